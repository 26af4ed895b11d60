// Checks and times the layer's variants, and sgemm as a baseline, in rounds; ratios are taken within a round.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "bench/harness/attention.h"
#include "bench/harness/mha_variants.h"
#include "bench/harness/rounds.h"

namespace rapt::bench {

struct MhaResult {
  MhaVariant variant = MhaVariant::packed;
  int threads = 1;
  BenchCheck check{};
  Samples ms{}, gflops{};

  std::string name() const;  // "packed qkv"; one thread is omitted
};

struct MhaBaseline {
  int threads = 1;
  std::string library{};  // the library with the fastest sgemm; empty: none was found
  Samples sgemm_gflops{};
};

struct MhaReport {
  std::vector<MhaBaseline> baselines;  // one per number of threads
  std::vector<MhaResult> results;

  // The time divided by the time of the same useful work at the rate of sgemm.
  std::optional<double> time_over_sgemm(const MhaResult& result) const;
  // The time divided by the time of packed qkv in f32, if that was timed too.
  std::optional<double> time_over_packed(const MhaResult& result) const;
};

struct MhaPlan {
  MhaSizes sizes{};
  std::vector<MhaVariant> variants{};
  std::vector<std::int64_t> threads{1};
  std::int64_t rounds = 9;
  double shortest_sample = 0.02;  // seconds
  Progress progress{};
};

// Checks every variant, then times the rounds. If a result is wrong, nothing is timed and the samples stay empty.
// kv_heads and variants of `plan` must be set.
MhaReport run_mha_rounds(const MhaPlan& plan);

}  // namespace rapt::bench
