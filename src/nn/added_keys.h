// The keys that add_bias_kv and add_zero_attention add. PyTorch puts them after the caller's keys, where every query
// sees them. Here they come first during attention: so a causal query sees one contiguous range of keys, and a key
// length still cuts off the last keys.
#pragma once

#include <vector>

#include "core/product.h"
#include "nn/layer_call.h"
#include "nn/parameters.h"

namespace rapt::nn {

// Writes the added keys into k and v, (B, added + Lk, Hkv·D): first bias_k and bias_v, then zeros.
void write_added_keys(const MultiHeadAttentionConfig& config, const Parameters& parameters, const TensorView& k,
                      const TensorView& v, const Workers& workers);

// Adds the number of added keys to key lengths and causal offsets. The masks are copied to `wide_masks`, with
// additional columns that hide nothing and add nothing.
void make_room_for_added_keys(const LayerCall& call, std::vector<Tensor>& wide_masks, AttentionOptions& options,
                              const Workers& workers);

// Reorders the last dimension of `weights` as in PyTorch: from (added, Lk) to (Lk, added).
void put_added_keys_last(std::int64_t added, const TensorView& weights, const Workers& workers);
// The inverse, into another tensor.
void put_added_keys_first(std::int64_t added, const ConstTensorView& from, const TensorView& to,
                          const Workers& workers);

}  // namespace rapt::nn
