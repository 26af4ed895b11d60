// Times one decoding step of a layer with each kind of cache, and a streaming read of the same number of bytes, in
// rounds.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "bench/harness/rounds.h"
#include "rapt/dtype.h"

namespace rapt::bench {

struct DecodePlan {
  std::int64_t batch = 1;
  std::int64_t cached = 8192;  // tokens
  std::int64_t embed = 1024;   // E
  std::int64_t heads = 16;
  std::int64_t kv_heads = 0;  // set by the caller
  std::int64_t page_size = 64;
  std::vector<DType> types{DType::f32, DType::bf16, DType::f16, DType::i8};
  std::vector<std::int64_t> threads{1};
  std::int64_t rounds = 9;
  double shortest_sample = 0.02;  // seconds
  Progress progress{};
};

struct DecodeResult {
  DType type = DType::f32;
  bool paged = false;
  int threads = 1;
  double error = 0.0;         // of the output, against the contiguous cache in f32
  double weight_bytes = 0.0;  // of the layer's matrices
  double cache_bytes = 0.0;   // of the keys and values that are read, scales included
  Samples ms{}, gbps{};       // of a step; gbps counts the bytes of weights and cache
  Samples stream_gbps{};      // of a streaming read of the same number of bytes

  std::string name() const;  // "bf16 pages t2"
  double limit() const;      // of the error: the largest that the cache's type causes; pages cause none
};

std::vector<DecodeResult> run_decode_rounds(const DecodePlan& plan);

}  // namespace rapt::bench
