// Times packed products, and the same products computed by BLAS libraries, in rounds; ratios are taken within a round.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "bench/harness/rounds.h"

namespace rapt::bench {

// W is (outputs, inputs).
struct GemmShape {
  std::int64_t inputs = 1024, outputs = 1024;  // K, N
};

struct GemmCase {
  std::int64_t rows = 1;  // M
  GemmShape shape{};
  DType type = DType::f32;  // of the packed weights; x and y are f32
  int threads = 1;

  std::string name() const;  // "m512 k1024 n1024"; f32 and one thread are omitted
  double flops() const;
  double weight_bytes() const;
  // Whether reading the weights takes most of the time, as with one row.
  bool is_read() const { return rows == 1; }
};

struct LibrarySamples {
  std::string name;
  Samples gflops;
};

struct GemmResult {
  GemmCase parameters{};
  BenchCheck check{};
  Samples ms{}, gflops{}, gbps{};
  std::vector<LibrarySamples> libraries{};  // their sgemm, in f32 whatever the case's type is
  Samples stream_gbps{};                    // of a streaming read of as many bytes; for one row only
  std::string stream_way{};

  const LibrarySamples* best_library() const;  // by median; null if there is none
};

// Cases are all combinations of the lists.
struct GemmPlan {
  std::vector<std::int64_t> rows{1, 8, 32, 128, 512, 2048};
  std::vector<GemmShape> shapes{GemmShape{}};
  std::vector<DType> types{DType::f32};
  std::vector<std::int64_t> threads{1};
  std::int64_t rounds = 9;
  double shortest_sample = 0.02;  // seconds
  Progress progress{};
};

// Checks every case, then times the rounds. If a result is wrong, nothing is timed and the samples stay empty. Throws
// std::invalid_argument if a case is too large.
std::vector<GemmResult> run_gemm_rounds(const GemmPlan& plan);

}  // namespace rapt::bench
