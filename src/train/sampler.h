// Generates tokens from a trained model, one at a time, with a KV cache.
#pragma once

#include <cstdint>
#include <vector>

#include "rapt/transformer.h"
#include "train/draw.h"

namespace rapt::train {

struct SamplerOptions {
  double temperature = 1.0;  // 0: always the most likely
  std::int64_t top_k = 0;    // only so many of the most likely; 0: all
  std::uint64_t seed = 0;
};

struct Sampled {
  std::int32_t token = 0;
  double probability = 0.0;  // that the model gives it, whatever the temperature
};

class Sampler {
 public:
  // Of a longer prompt, the last tokens that fit.
  Sampler(const Transformer& model, const std::vector<std::int32_t>& prompt, const SamplerOptions& options);

  // Whether the next token still sees all that came before it.
  bool full() const { return cache_.length() + static_cast<std::int64_t>(fresh_.size()) > model_.config().context; }
  // When the context is full, generation continues with its newer half, which is processed again.
  Sampled next();

 private:
  Sampled choose(const Tensor& logits);

  const Transformer& model_;
  SamplerOptions options_;
  Draw draw_;
  TransformerCache cache_;
  std::vector<std::int32_t> past_;   // what the cache holds
  std::vector<std::int32_t> fresh_;  // what it does not hold yet
};

}  // namespace rapt::train
