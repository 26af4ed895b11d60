// `rapt bench mha`: the layer, built in several ways, compared with each other and with the cost of its arithmetic.
#pragma once

#include "bench/harness/mha_rounds.h"
#include "cli/bench/measured.h"

namespace rapt::cli {

using MhaOptions = PlanOptions<bench::MhaPlan>;  // empty variants: all

void add_bench_mha(Command& bench, MhaOptions& options);
ExitCode run_bench_mha(const MhaOptions& options);

}  // namespace rapt::cli
