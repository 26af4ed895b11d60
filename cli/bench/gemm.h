// `rapt bench gemm`: the packed matrix product, compared with the BLAS libraries of this machine.
#pragma once

#include "bench/harness/gemm_rounds.h"
#include "cli/bench/measured.h"

namespace rapt::cli {

using GemmOptions = PlanOptions<bench::GemmPlan>;

void add_bench_gemm(Command& bench, GemmOptions& options);
ExitCode run_bench_gemm(const GemmOptions& options);

}  // namespace rapt::cli
