// `rapt bench gemm`: the packed matrix product, compared with the BLAS libraries of this machine.
#pragma once

#include "bench/harness/gemm_rounds.h"
#include "cli/exit_code.h"
#include "cli/terminal/terminal.h"

namespace rapt::cli {

class Command;

struct GemmOptions {
  bool asked = false;  // set when the command is given
  bench::GemmPlan plan;
  bool json = false;
  ColorChoice color = ColorChoice::automatic;
};

void add_bench_gemm(Command& bench, GemmOptions& options);
ExitCode run_bench_gemm(const GemmOptions& options);

}  // namespace rapt::cli
