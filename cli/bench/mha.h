// `rapt bench mha`: the layer, built in several ways, compared with each other and with the cost of its arithmetic.
#pragma once

#include "bench/harness/mha_rounds.h"
#include "cli/exit_code.h"
#include "cli/terminal/terminal.h"

namespace rapt::cli {

class Command;

struct MhaOptions {
  bool asked = false;   // set when the command is given
  bench::MhaPlan plan;  // empty variants: all
  bool json = false;
  ColorChoice color = ColorChoice::automatic;
};

void add_bench_mha(Command& bench, MhaOptions& options);
ExitCode run_bench_mha(const MhaOptions& options);

}  // namespace rapt::cli
