// `rapt bench`: times attention, the packed product and the layer, and compares them with the peak of the machine.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "bench_case.h"
#include "bench_decode.h"
#include "bench_gemm.h"
#include "bench_mha.h"
#include "exit_code.h"
#include "rapt/attention.h"
#include "terminal.h"

namespace rapt::cli {

class Command;

struct BenchOptions {
  BenchSweep sweep;
  Engine engine = Engine::automatic;
  bool baseline = false;
  std::int64_t rounds = 9;
  double shortest_sample = 0.02;  // seconds
  bool json = false;
  bool csv = false;
  std::optional<std::string> plot;  // a file
  ColorChoice color = ColorChoice::automatic;
  GemmOptions gemm;      // of `rapt bench gemm`
  MhaOptions mha;        // of `rapt bench mha`
  DecodeOptions decode;  // of `rapt bench decode`; all others are of `rapt bench attention` and `rapt bench backward`
};

Command add_bench(Command& rapt, BenchOptions& options);
ExitCode run_bench(const BenchOptions& options);

}  // namespace rapt::cli
