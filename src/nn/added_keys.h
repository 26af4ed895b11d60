// The keys that add_bias_kv and add_zero_attention append: PyTorch puts them after the others, where every query sees
// them. Here they come first during attention, so that key lengths and the causal order stay simple: query i sees the
// added keys and its own as one range.
#pragma once

#include <vector>

#include "core/product.h"
#include "nn/layer_call.h"
#include "nn/parameters.h"

namespace rapt::nn {

// k and v are (B, added + Lk, Hkv·D): bias_k and bias_v are stored first, then zeros.
void write_added_keys(const MultiHeadAttentionConfig& config, const Parameters& parameters, const TensorView& k,
                      const TensorView& v, const Workers& workers);

// Shifts the key-related `options` by the number of added keys. The masks are copied to `wide_masks`, with additional
// columns that hide nothing and add nothing.
void make_room_for_added_keys(const LayerCall& call, std::vector<Tensor>& wide_masks, AttentionOptions& options,
                              const Workers& workers);

// Weights as PyTorch orders them: from (added, Lk) to (Lk, added) along the last dimension.
void put_added_keys_last(std::int64_t added, const TensorView& weights, const Workers& workers);
// The inverse, into another tensor.
void put_added_keys_first(std::int64_t added, const ConstTensorView& from, const TensorView& to,
                          const Workers& workers);

}  // namespace rapt::nn
