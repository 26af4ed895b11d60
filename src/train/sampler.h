// Generates tokens from a trained model, one at a time, with a KV cache.
#pragma once

#include <cstdint>
#include <vector>

#include "rapt/transformer.h"
#include "train/draw.h"

namespace rapt::train {

struct SamplerOptions {
  double temperature = 1.0;  // 0: always the most likely
  std::int64_t top_k = 0;    // sample from this many of the most likely; 0: all
  std::uint64_t seed = 0;
};

struct Sampled {
  std::int32_t token = 0;
  double probability = 0.0;  // under the model, at temperature 1
};

class Sampler {
 public:
  // If the prompt exceeds the context, its last tokens are used.
  Sampler(const Transformer& model, const std::vector<std::int32_t>& prompt, const SamplerOptions& options);

  // Whether the context is full: the next token cannot attend to all earlier ones.
  bool full() const { return cache_.length() + static_cast<std::int64_t>(fresh_.size()) > model_.config().context; }
  // When the context is full, generation continues with its newer half, which is processed again.
  Sampled next();

 private:
  Sampled choose(const Tensor& logits);

  const Transformer& model_;
  SamplerOptions options_;
  Draw draw_;
  TransformerCache cache_;
  std::vector<std::int32_t> past_;   // tokens in the cache
  std::vector<std::int32_t> fresh_;  // tokens not yet in the cache
};

}  // namespace rapt::train
