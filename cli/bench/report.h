// Output formats of `rapt bench`: a table, comma-separated values and JSON.
#pragma once

#include <string>

#include <nlohmann/json_fwd.hpp>

#include "bench/harness/rounds.h"
#include "cli/terminal/page.h"

namespace rapt::cli {

struct BenchMachine {
  std::string cpu;
  std::string gpu;  // the GPU that was measured; empty: none
  std::string isa;  // the kernels in use
  std::string fma;  // the instructions of the FMA peak
  int threads = 1;  // the library's default
  int cores = 1;

  static BenchMachine here();
};

void show_bench(Page& page, const BenchMachine& machine, const bench::BenchReport& report);
std::string bench_as_csv(const bench::BenchReport& report);
nlohmann::ordered_json bench_as_json(const BenchMachine& machine, const bench::BenchReport& report);

}  // namespace rapt::cli
