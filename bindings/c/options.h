// The structs of attention, of the layer and of the cache: from C to C++, and configs back to C.
#pragma once

#include <vector>

#include "convert.h"
#include "rapt/attention.h"
#include "rapt/kv_cache.h"
#include "rapt/multi_head_attention.h"

namespace rapt::c {

AttentionOptions attention_options(const Caller& caller, const rapt_attention_options* given);
AttentionOutputs attention_outputs(const Caller& caller, const rapt_attention_outputs* given);
AttentionUpstream attention_upstream(const Caller& caller, const rapt_attention_upstream* given);
AttentionGradients attention_gradients(const Caller& caller, const rapt_attention_gradients* given);

std::vector<Capture> captures(const Caller& caller, const rapt_capture* first, std::size_t count);
std::vector<MaskGradient> mask_gradients(const Caller& caller, const rapt_mask_gradient* first, std::size_t count);

KvCacheConfig kv_cache_config(const Caller& caller, const rapt_kv_cache_config* given);
std::optional<RotaryOptions> rotary_options(const Caller& caller, const rapt_rotary_options* given);
MultiHeadAttentionConfig layer_config(const Caller& caller, const rapt_layer_config* given);

rapt_kv_cache_config as_c(const KvCacheConfig& config);
rapt_rotary_options as_c(const RotaryOptions& options);  // without parallel_for, which cannot be converted back
rapt_layer_config as_c(const MultiHeadAttentionConfig& config, const rapt_rotary_options* rotary);

// The structs with initial values other than zero: the defaults of C++.
template <>
rapt_capture defaults();
template <>
rapt_weights_gradient defaults();
template <>
rapt_kv_cache_config defaults();
template <>
rapt_rotary_options defaults();
template <>
rapt_layer_config defaults();

}  // namespace rapt::c
