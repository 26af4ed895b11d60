// Checks and times the layer's variants, and sgemm beside them, in rounds: ratios are taken within a round.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "bench_attention.h"
#include "bench_mha.h"
#include "bench_rounds.h"

namespace rapt::cli {

struct MhaResult {
  MhaVariant variant = MhaVariant::packed;
  int threads = 1;
  BenchCheck check{};
  Samples ms{}, gflops{};

  std::string name() const;  // "packed qkv"; one thread is omitted
};

struct MhaBaseline {
  int threads = 1;
  std::string library{};  // whose sgemm is the fastest; empty: none was found
  Samples sgemm_gflops{};
};

struct MhaReport {
  std::vector<MhaBaseline> baselines;  // one per number of threads
  std::vector<MhaResult> results;

  // Time over what the result's useful work takes at the rate of sgemm.
  std::optional<double> time_over_sgemm(const MhaResult& result) const;
  // Time over that of packed qkv in f32, where that was timed too.
  std::optional<double> time_over_packed(const MhaResult& result) const;
};

// Checks every variant, then times the rounds. Where an answer is wrong nothing is timed: the samples stay empty.
// `options` has kv_heads and variants filled in.
MhaReport run_mha_rounds(const MhaOptions& options);

}  // namespace rapt::cli
