// One pass of tokens through the layers of a model: the steps that all families share.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "models/model.h"
#include "models/network/parts.h"
#include "rapt/kv_cache.h"

namespace rapt::models {

// Which heads are off, as a mask for each layer that has some.
class SwitchedOff {
 public:
  SwitchedOff(const ModelConfig& config,
              std::span<const HeadPlace> heads);  // throws Error for a head that is not there
  void apply(std::size_t layer, AttentionOptions& options) const;

 private:
  std::vector<Tensor> masks_;  // (1, H, 1, 1), true: off; empty for a layer with all of its heads
};

class Pass {
 public:
  // With caches, one for each layer, the tokens follow those that are cached.
  Pass(const Parts& parts, std::span<const std::int32_t> tokens, const SwitchedOff& off,
       std::vector<KvCache>* caches = nullptr);

  const Parts& parts() const { return parts_; }
  std::int64_t count() const { return std::ssize(tokens_); }

  // (T, E): the sum of the embeddings of tokens, of positions and, if the model has them, of types.
  Tensor embedded() const;
  Tensor attended(std::size_t layer, const Tensor& x);              // (T, E) -> (T, E)
  Tensor transformed(std::size_t layer, const ConstTensorView& x);  // the MLP: (T, E) -> (T, E)
  void keep(std::size_t layer, const Tensor& x);                    // the output of a layer; 0: the embedding

  // Where results go; empty if they are not wanted.
  Tensor hidden;   // (L + 1, T, E)
  Tensor weights;  // (L, H, T, T)

 private:
  std::int64_t row_of_position(std::int64_t n) const;

  const Parts& parts_;
  std::span<const std::int32_t> tokens_;
  const SwitchedOff& off_;
  std::vector<KvCache>* caches_;
  std::int64_t before_ = 0;  // cached tokens
};

void add(const TensorView& to, const ConstTensorView& x);  // (T, E), contiguous f32

// The output of the last layer, (T, E).
Tensor run_bert(Pass& pass);  // and its relatives
Tensor run_gpt2(Pass& pass);
Tensor run_layers(Pass& pass);  // the one of the two that the model is

// Throws Error unless the tokens, with `before` of them before, are ones that the model can read.
void check_tokens(const ModelConfig& config, std::span<const std::int32_t> tokens, std::int64_t before = 0);

}  // namespace rapt::models
