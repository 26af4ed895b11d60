// `rapt bench decode`: the layer decoding one token with a long cache of each kind, compared with a streaming read of
// its bytes.
#pragma once

#include "bench/harness/decode_rounds.h"
#include "cli/bench/measured.h"

namespace rapt::cli {

using DecodeOptions = PlanOptions<bench::DecodePlan>;  // kv_heads 0: as many as heads

void add_bench_decode(Command& bench, DecodeOptions& options);
ExitCode run_bench_decode(const DecodeOptions& options);

}  // namespace rapt::cli
