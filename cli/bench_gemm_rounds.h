// Times packed products, and the same products by other libraries, in rounds: ratios are taken within a round.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "bench_gemm.h"
#include "bench_rounds.h"

namespace rapt::cli {

struct GemmCase {
  std::int64_t rows = 1;  // M
  GemmShape shape{};
  DType type = DType::f32;  // of the packed weights; x and y are f32
  int threads = 1;

  std::string name() const;  // "m512 k1024 n1024"; f32 and one thread are omitted
  double flops() const;
  double weight_bytes() const;
  // With one row, reading the weights is all the work.
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
  std::vector<LibrarySamples> libraries{};  // sgemm, in f32 whatever the type of our weights
  Samples stream_gbps{};                    // one row: a plain read of as many bytes
  std::string stream_way{};

  const LibrarySamples* best_library() const;  // by median; null where there is none
};

// Checks every case, then times the rounds. Where an answer is wrong nothing is timed: the samples stay empty.
std::vector<GemmResult> run_gemm_rounds(const GemmOptions& options);

}  // namespace rapt::cli
