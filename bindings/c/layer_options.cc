#include "options.h"

namespace rapt::c {

namespace {

static_assert(same(DType::f32, RAPT_F32) && same(DType::f64, RAPT_F64) && same(DType::bf16, RAPT_BF16) &&
              same(DType::f16, RAPT_F16) && same(DType::boolean, RAPT_BOOL) && same(DType::i8, RAPT_I8));
static_assert(same(RotaryPairs::half_split, RAPT_ROTARY_HALF_SPLIT) &&
              same(RotaryPairs::interleaved, RAPT_ROTARY_INTERLEAVED));
static_assert(same(RotaryScaling::Kind::none, RAPT_ROTARY_NONE) &&
              same(RotaryScaling::Kind::linear, RAPT_ROTARY_LINEAR) &&
              same(RotaryScaling::Kind::ntk, RAPT_ROTARY_NTK) &&
              same(RotaryScaling::Kind::dynamic, RAPT_ROTARY_DYNAMIC) &&
              same(RotaryScaling::Kind::yarn, RAPT_ROTARY_YARN) &&
              same(RotaryScaling::Kind::llama3, RAPT_ROTARY_LLAMA3));

}  // namespace

KvCacheConfig kv_cache_config(const Caller& caller, const rapt_kv_cache_config* given) {
  const rapt_kv_cache_config c = whole(caller, {"config"}, &caller.the("config", given));
  caller.require_zero({"config"}, c.reserved);
  return {.kv_heads = c.kv_heads,
          .head_size = c.head_size,
          .value_size = c.value_size,
          .dtype = caller.choice({"config.dtype"}, c.dtype, DType::i8),
          .sequences = c.sequences,
          .length = c.length,
          .page_size = c.page_size,
          .pages = c.pages};
}

rapt_kv_cache_config as_c(const KvCacheConfig& config) {
  rapt_kv_cache_config c{};
  c.struct_size = sizeof(c);
  c.kv_heads = config.kv_heads;
  c.head_size = config.head_size;
  c.value_size = config.value_size;
  c.dtype = static_cast<std::int32_t>(config.dtype);
  c.sequences = config.sequences;
  c.length = config.length;
  c.page_size = config.page_size;
  c.pages = config.pages;
  return c;
}

std::optional<RotaryOptions> rotary_options(const Caller& caller, const rapt_rotary_options* given) {
  if (given == nullptr) return {};
  const rapt_rotary_options c = whole(caller, {"rotary"}, given);
  caller.require_zero({"rotary"}, c.reserved);
  RotaryOptions options{.base = c.base,
                        .size = c.size,
                        .pairs = caller.choice({"rotary.pairs"}, c.pairs, RotaryPairs::interleaved),
                        .max_positions = c.max_positions,
                        .threads = c.threads,
                        .parallel_for = parallel_for_of(c.parallel_for, c.parallel_for_context)};
  RotaryScaling& scaling = options.scaling;
  scaling.kind = caller.choice({"rotary.scaling_kind"}, c.scaling_kind, RotaryScaling::Kind::llama3);
  scaling.factor = c.scaling_factor;
  scaling.original_length = c.scaling_original_length;
  scaling.length = c.scaling_length;
  scaling.ramp.beta_fast = c.scaling_ramp_beta_fast;
  scaling.ramp.beta_slow = c.scaling_ramp_beta_slow;
  if (c.has_scaling_ramp_attention_factor != 0) scaling.ramp.attention_factor = c.scaling_ramp_attention_factor;
  scaling.ramp.truncate = c.scaling_ramp_truncate != 0;
  scaling.low_freq_factor = c.scaling_low_freq_factor;
  scaling.high_freq_factor = c.scaling_high_freq_factor;
  return options;
}

rapt_rotary_options as_c(const RotaryOptions& options) {
  rapt_rotary_options c{};
  c.struct_size = sizeof(c);
  const RotaryScaling& scaling = options.scaling;
  c.base = options.base;
  c.size = options.size;
  c.pairs = static_cast<std::int32_t>(options.pairs);
  c.scaling_kind = static_cast<std::int32_t>(scaling.kind);
  c.scaling_factor = scaling.factor;
  c.scaling_original_length = scaling.original_length;
  c.scaling_length = scaling.length;
  c.scaling_ramp_beta_fast = scaling.ramp.beta_fast;
  c.scaling_ramp_beta_slow = scaling.ramp.beta_slow;
  c.has_scaling_ramp_attention_factor = scaling.ramp.attention_factor ? 1 : 0;
  c.scaling_ramp_attention_factor = scaling.ramp.attention_factor.value_or(0.0);
  c.scaling_ramp_truncate = scaling.ramp.truncate ? 1 : 0;
  c.scaling_low_freq_factor = scaling.low_freq_factor;
  c.scaling_high_freq_factor = scaling.high_freq_factor;
  c.max_positions = options.max_positions;
  c.threads = options.threads;
  return c;
}

MultiHeadAttentionConfig layer_config(const Caller& caller, const rapt_layer_config* given) {
  const rapt_layer_config c = whole(caller, {"config"}, &caller.the("config", given));
  MultiHeadAttentionConfig config{.embed_size = c.embed_size,
                                  .heads = c.heads,
                                  .kv_heads = c.kv_heads,
                                  .head_size = c.head_size,
                                  .key_size = c.key_size,
                                  .value_size = c.value_size,
                                  .output_size = c.output_size,
                                  .bias = c.bias != 0,
                                  .separate_projections = c.separate_projections != 0,
                                  .add_bias_kv = c.add_bias_kv != 0,
                                  .add_zero_attention = c.add_zero_attention != 0,
                                  .dropout = c.dropout,
                                  .output_dropout = c.output_dropout,
                                  .batch_first = c.batch_first != 0,
                                  .context_length = c.context_length,
                                  .rotary = rotary_options(caller, c.rotary),
                                  .slice = {c.slice_index, c.slice_count},
                                  .dtype = caller.choice({"config.dtype"}, c.dtype, DType::i8)};
  if (c.has_output_bias != 0) config.output_bias = c.output_bias != 0;
  return config;
}

rapt_layer_config as_c(const MultiHeadAttentionConfig& config, const rapt_rotary_options* rotary) {
  rapt_layer_config c{};
  c.struct_size = sizeof(c);
  c.embed_size = config.embed_size;
  c.heads = config.heads;
  c.kv_heads = config.kv_heads;
  c.head_size = config.head_size;
  c.key_size = config.key_size;
  c.value_size = config.value_size;
  c.output_size = config.output_size;
  c.bias = config.bias ? 1 : 0;
  c.has_output_bias = config.output_bias ? 1 : 0;
  c.output_bias = config.output_bias.value_or(false) ? 1 : 0;
  c.separate_projections = config.separate_projections ? 1 : 0;
  c.add_bias_kv = config.add_bias_kv ? 1 : 0;
  c.add_zero_attention = config.add_zero_attention ? 1 : 0;
  c.dropout = config.dropout;
  c.output_dropout = config.output_dropout;
  c.batch_first = config.batch_first ? 1 : 0;
  c.dtype = static_cast<std::int32_t>(config.dtype);
  c.context_length = config.context_length;
  c.rotary = config.rotary ? rotary : nullptr;
  c.slice_index = config.slice.index;
  c.slice_count = config.slice.count;
  return c;
}

}  // namespace rapt::c
