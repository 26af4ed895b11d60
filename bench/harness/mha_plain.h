// Attention by the plain formula, in the simplest code that compilers vectorise: a baseline for the layer.
#pragma once

#include <cstdint>

#include "rapt/tensor.h"

namespace rapt::bench {

// q and out are (B, Hq, L, D), k and v (B, Hkv, L, D), with any strides whose last one is 1; scores are (B, Hq, L, L),
// contiguous, and hold the weights afterwards. All f32.
struct PlainAttention {
  ConstTensorView query, key, value;
  TensorView scores, out;
  bool causal = false;
  int threads = 1;
};
void plain_attention(const PlainAttention& call);

}  // namespace rapt::bench
