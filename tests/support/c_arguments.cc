#include "support/c_arguments.h"

#include <algorithm>

#include "bindings/c/window.h"

namespace rapt::test {

namespace {

DLDataType type_of(DType dtype) {
  switch (dtype) {
    case DType::f32: return {kDLFloat, 32, 1};
    case DType::f64: return {kDLFloat, 64, 1};
    case DType::bf16: return {kDLBfloat, 16, 1};
    case DType::f16: return {kDLFloat, 16, 1};
    case DType::boolean: return {kDLBool, 8, 1};
    case DType::i8: return {kDLInt, 8, 1};
  }
  return {};
}

int kind_of(Mask::Kind kind) {
  switch (kind) {
    case Mask::Kind::keep: return RAPT_MASK_KEEP;
    case Mask::Kind::drop: return RAPT_MASK_DROP;
    case Mask::Kind::add: return RAPT_MASK_ADD;
    case Mask::Kind::fill: return RAPT_MASK_FILL;
  }
  return -1;
}

int kind_of(Alignment::Kind kind) {
  switch (kind) {
    case Alignment::Kind::unnamed: return RAPT_ALIGNMENT_UNNAMED;
    case Alignment::Kind::top_left: return RAPT_ALIGNMENT_TOP_LEFT;
    case Alignment::Kind::bottom_right: return RAPT_ALIGNMENT_BOTTOM_RIGHT;
    case Alignment::Kind::offset: return RAPT_ALIGNMENT_OFFSET;
  }
  return -1;
}

int stage_of(Stage stage) {
  switch (stage) {
    case Stage::raw: return RAPT_STAGE_RAW;
    case Stage::capped: return RAPT_STAGE_CAPPED;
    case Stage::masked: return RAPT_STAGE_MASKED;
    case Stage::weights: return RAPT_STAGE_WEIGHTS;
    case Stage::dropped_weights: return RAPT_STAGE_DROPPED_WEIGHTS;
  }
  return -1;
}

void run_pool(void* pool, std::int64_t count, rapt_task task, void* task_context) {
  (*static_cast<const ParallelFor*>(pool))(count, [&](std::int64_t index) { task(task_context, index); });
}

template <class Request>
void select(Request& to, const Selection& of) {
  to.of_mean_over_heads = of.mean_over_heads ? 1 : 0;
  to.of_heads = of.heads.data(), to.of_heads_count = of.heads.size();
  to.of_queries = of.queries.data(), to.of_queries_count = of.queries.size();
}

// Appends a struct to a list, initialized by its init function.
template <class Struct>
Struct& made(std::deque<Struct>& list, rapt_status (*init)(Struct*, std::size_t)) {
  Struct& one = list.emplace_back();
  (void)init(&one, sizeof(Struct));
  return one;
}

}  // namespace

const DLTensor* CArguments::tensor(const ConstTensorView& view) {
  if (!view.defined()) return nullptr;
  Held& held = tensors_.emplace_back();
  std::copy(view.shape().begin(), view.shape().end(), held.shape.begin());
  std::copy(view.strides().begin(), view.strides().end(), held.strides.begin());
  held.tensor.data = const_cast<void*>(view.data());  // NOLINT(cppcoreguidelines-pro-type-const-cast): C has no other
  held.tensor.device = {view.device().kind == Device::Kind::cpu ? kDLCPU : kDLCUDA, view.device().index};
  held.tensor.ndim = view.rank();
  held.tensor.dtype = type_of(view.dtype());
  held.tensor.shape = held.shape.data();
  held.tensor.strides = held.strides.data();
  return &held.tensor;
}

const rapt_attention_options* CArguments::options(const AttentionOptions& from) {
  std::vector<rapt_mask>& masks = masks_.emplace_back(from.masks.size());
  for (std::size_t n = 0; n < masks.size(); ++n) {
    rapt_mask_init(&masks[n], sizeof(rapt_mask));
    masks[n].kind = kind_of(from.masks[n].kind);
    masks[n].view = tensor(from.masks[n].view);
    masks[n].value = from.masks[n].value;
  }
  rapt_attention_options& to = made(options_, rapt_attention_options_init);
  to.has_scale = from.scale ? 1 : 0, to.scale = from.scale.value_or(0.0);
  to.softcap = from.softcap;
  to.masks = masks.data(), to.masks_count = masks.size();
  to.causal = from.causal ? 1 : 0;
  c::set_window(to, from.window);
  to.alignment_kind = kind_of(from.alignment.kind);
  to.alignment_values = from.alignment.values.data(), to.alignment_values_count = from.alignment.values.size();
  to.key_lengths = from.key_lengths.data(), to.key_lengths_count = from.key_lengths.size();
  to.packed_query_starts = from.packed.query_starts.data();
  to.packed_query_starts_count = from.packed.query_starts.size();
  to.packed_key_starts = from.packed.key_starts.data();
  to.packed_key_starts_count = from.packed.key_starts.size();
  to.pages_table = from.pages.table.data(), to.pages_table_count = from.pages.table.size();
  to.pages_per_row = from.pages.per_row, to.pages_keys = from.pages.keys;
  to.key_scales = tensor(from.key_scales), to.value_scales = tensor(from.value_scales);
  to.alibi_slopes = from.alibi_slopes.data(), to.alibi_slopes_count = from.alibi_slopes.size();
  to.sinks = tensor(from.sinks);
  to.dropout_rate = from.dropout.rate, to.dropout_seed = from.dropout.seed;
  to.dropout_batch_start = from.dropout.batch_start, to.dropout_head_start = from.dropout.head_start;
  to.dropout_query_start = from.dropout.query_start;
  to.engine = static_cast<std::int32_t>(from.engine);  // the same numbers: bindings/c/attention_options.cc asserts it
  to.threads = from.threads;
  if (from.parallel_for) {
    to.parallel_for = run_pool;
    to.parallel_for_context =
        const_cast<ParallelFor*>(&from.parallel_for);  // NOLINT(cppcoreguidelines-pro-type-const-cast)
  }
  to.workspace = from.workspace.data(), to.workspace_bytes = from.workspace.size();
  return &to;
}

std::vector<rapt_capture>& CArguments::captures(const std::vector<Capture>& from) {
  std::vector<rapt_capture>& list = captures_.emplace_back(from.size());
  for (std::size_t n = 0; n < list.size(); ++n) {
    rapt_capture_init(&list[n], sizeof(rapt_capture));
    list[n].stage = stage_of(from[n].stage);
    list[n].to = tensor(from[n].to);
    select(list[n], from[n].of);
  }
  return list;
}

const rapt_attention_outputs* CArguments::outputs(const AttentionOutputs& from) {
  rapt_attention_outputs& to = made(outputs_, rapt_attention_outputs_init);
  to.out = tensor(from.out), to.lse = tensor(from.lse);
  const std::vector<rapt_capture>& list = captures(from.captures);
  to.captures = list.data(), to.captures_count = list.size();
  return &to;
}

const rapt_attention_upstream* CArguments::upstream(const AttentionUpstream& from) {
  std::vector<rapt_weights_gradient>& list = weights_gradients_.emplace_back(from.dweights.size());
  for (std::size_t n = 0; n < list.size(); ++n) {
    rapt_weights_gradient_init(&list[n], sizeof(rapt_weights_gradient));
    list[n].stage = stage_of(from.dweights[n].stage);
    list[n].from = tensor(from.dweights[n].from);
    select(list[n], from.dweights[n].of);
  }
  rapt_attention_upstream& to = made(upstreams_, rapt_attention_upstream_init);
  to.dout = tensor(from.dout), to.dlse = tensor(from.dlse);
  to.dweights = list.data(), to.dweights_count = list.size();
  to.out = tensor(from.out), to.lse = tensor(from.lse);
  return &to;
}

std::vector<rapt_mask_gradient>& CArguments::mask_gradients(const std::vector<MaskGradient>& from) {
  std::vector<rapt_mask_gradient>& list = mask_gradients_.emplace_back(from.size());
  for (std::size_t n = 0; n < list.size(); ++n) {
    rapt_mask_gradient_init(&list[n], sizeof(rapt_mask_gradient));
    list[n].mask = from[n].mask, list[n].to = tensor(from[n].to);
  }
  return list;
}

const rapt_attention_gradients* CArguments::gradients(const AttentionGradients& from) {
  rapt_attention_gradients& to = made(gradients_, rapt_attention_gradients_init);
  to.dquery = tensor(from.dquery), to.dkey = tensor(from.dkey), to.dvalue = tensor(from.dvalue);
  to.dsinks = tensor(from.dsinks);
  const std::vector<rapt_mask_gradient>& list = mask_gradients(from.dmasks);
  to.dmasks = list.data(), to.dmasks_count = list.size();
  return &to;
}

// ---------------------------------------------------------------- the layer

const rapt_rotary_options* CArguments::rotary(const std::optional<RotaryOptions>& from) {
  if (!from) return nullptr;
  rapt_rotary_options& to = made(rotaries_, rapt_rotary_options_init);
  to.base = from->base, to.size = from->size;
  to.pairs = from->pairs == RotaryPairs::half_split ? RAPT_ROTARY_HALF_SPLIT : RAPT_ROTARY_INTERLEAVED;
  const RotaryScaling& scaling = from->scaling;
  to.scaling_kind = static_cast<int>(scaling.kind);
  to.scaling_factor = scaling.factor;
  to.scaling_original_length = scaling.original_length, to.scaling_length = scaling.length;
  to.scaling_ramp_beta_fast = scaling.ramp.beta_fast, to.scaling_ramp_beta_slow = scaling.ramp.beta_slow;
  to.has_scaling_ramp_attention_factor = scaling.ramp.attention_factor ? 1 : 0;
  to.scaling_ramp_attention_factor = scaling.ramp.attention_factor.value_or(0.0);
  to.scaling_ramp_truncate = scaling.ramp.truncate ? 1 : 0;
  to.scaling_low_freq_factor = scaling.low_freq_factor, to.scaling_high_freq_factor = scaling.high_freq_factor;
  to.max_positions = from->max_positions, to.threads = from->threads;
  return &to;
}

const rapt_layer_config* CArguments::config(const MultiHeadAttentionConfig& from) {
  rapt_layer_config& to = made(configs_, rapt_layer_config_init);
  to.embed_size = from.embed_size;
  to.heads = from.heads, to.kv_heads = from.kv_heads, to.head_size = from.head_size;
  to.key_size = from.key_size, to.value_size = from.value_size, to.output_size = from.output_size;
  to.bias = from.bias ? 1 : 0;
  to.has_output_bias = from.output_bias ? 1 : 0, to.output_bias = from.output_bias.value_or(false) ? 1 : 0;
  to.separate_projections = from.separate_projections ? 1 : 0;
  to.add_bias_kv = from.add_bias_kv ? 1 : 0, to.add_zero_attention = from.add_zero_attention ? 1 : 0;
  to.dropout = from.dropout, to.output_dropout = from.output_dropout;
  to.batch_first = from.batch_first ? 1 : 0;
  to.context_length = from.context_length;
  to.rotary = rotary(from.rotary);
  to.slice_index = from.slice.index, to.slice_count = from.slice.count;
  to.dtype = static_cast<int>(from.dtype);
  return &to;
}

rapt_layer_options* CArguments::options(const LayerOptions& from) {
  rapt_layer_options& to = made(layer_options_, rapt_layer_options_init);
  to.attention = options(from.attention);
  to.weights = from.weights == ReturnWeights::none   ? RAPT_WEIGHTS_NONE
               : from.weights == ReturnWeights::mean ? RAPT_WEIGHTS_MEAN
                                                     : RAPT_WEIGHTS_PER_HEAD;
  to.training = from.training ? 1 : 0;
  to.position = from.position;
  to.sequences = from.sequences.data(), to.sequences_count = from.sequences.size();
  return &to;
}

const rapt_layer_outputs* CArguments::outputs(const LayerOutputs& from) {
  rapt_layer_outputs& to = made(layer_outputs_, rapt_layer_outputs_init);
  to.out = tensor(from.out), to.weights = tensor(from.weights), to.lse = tensor(from.lse);
  const std::vector<rapt_capture>& list = captures(from.captures);
  to.captures = list.data(), to.captures_count = list.size();
  return &to;
}

const rapt_layer_upstream* CArguments::upstream(const LayerUpstream& from) {
  rapt_layer_upstream& to = made(layer_upstreams_, rapt_layer_upstream_init);
  to.dout = tensor(from.dout), to.dweights = tensor(from.dweights);
  return &to;
}

rapt_layer_gradients* CArguments::gradients(const LayerGradients& from) {
  rapt_layer_gradients& to = made(layer_gradients_, rapt_layer_gradients_init);
  to.dquery = tensor(from.dquery), to.dkey = tensor(from.dkey), to.dvalue = tensor(from.dvalue);
  to.dsinks = tensor(from.dsinks);
  const std::vector<rapt_mask_gradient>& list = mask_gradients(from.dmasks);
  to.dmasks = list.data(), to.dmasks_count = list.size();
  return &to;
}

}  // namespace rapt::test
