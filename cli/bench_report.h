// The output formats of `rapt bench`: a table, CSV, JSON and a plot.
#pragma once

#include <string>

#include <nlohmann/json_fwd.hpp>

#include "bench_rounds.h"
#include "page.h"

namespace rapt::cli {

struct BenchMachine {
  std::string cpu;
  std::string isa;  // the kernels in use
  std::string fma;  // the instructions of the FMA peak
  int threads = 1;  // that the library would use by itself
  int cores = 1;

  static BenchMachine here();
};

void show_bench(Page& page, const BenchMachine& machine, const BenchReport& report);
std::string bench_as_csv(const BenchReport& report);
nlohmann::ordered_json bench_as_json(const BenchMachine& machine, const BenchReport& report);
std::string bench_as_svg(const BenchMachine& machine, const BenchReport& report);

}  // namespace rapt::cli
