// `rapt bench`: times attention, the packed product and the layer, and compares them with the peak of the machine.
#pragma once

#include <cstdint>

#include "bench/harness/case.h"
#include "cli/bench/decode.h"
#include "cli/bench/gemm.h"
#include "cli/bench/mha.h"
#include "cli/exit_code.h"
#include "cli/terminal/terminal.h"
#include "rapt/attention.h"

namespace rapt::cli {

class Command;

struct BenchOptions {
  bench::BenchSweep sweep;
  Engine engine = Engine::automatic;
  Device::Kind device = Device::Kind::cpu;
  bool baseline = false;
  std::int64_t rounds = 9;
  double shortest_sample = 0.02;  // seconds
  bool json = false;
  bool csv = false;
  ColorChoice color = ColorChoice::automatic;
  GemmOptions gemm;      // of `rapt bench gemm`
  MhaOptions mha;        // of `rapt bench mha`
  DecodeOptions decode;  // of `rapt bench decode`; all other members are of `rapt bench attention` and `backward`
};

Command add_bench(Command& rapt, BenchOptions& options);
ExitCode run_bench(const BenchOptions& options);

}  // namespace rapt::cli
