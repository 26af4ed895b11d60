// rapt for the benchmark against its peers: C functions with plain pointers, loaded by compare.py (through
// contestants.py, layers.py and training.py), so that rapt and its peers alternate in one process.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "rapt/attention.h"
#include "rapt/cpu.h"
#include "rapt/multi_head_attention.h"

namespace {

// Runs `work`. Returns null, or an error message that is valid until this thread's next call.
const char* message_of(const std::function<void()>& work) {
  static thread_local std::string message;
  try {
    work();
    return nullptr;
  } catch (const std::exception& error) {
    message = error.what();
    return message.c_str();
  }
}

}  // namespace

extern "C" {

// contestants.py declares the same fields in the same order. Tensors are contiguous and, where nothing else is said,
// (B, H, L, D).
struct RaptPeerCall {
  const void* query;
  const void* key;
  const void* value;
  void* out;
  const void* mask;     // null, or (B, Hq, Lq, Lk), or (Lq, Lk): bool (true is kept) or float (added)
  float* mean_weights;  // null, or (B, Lq, Lk): the mean of the weights over heads
  std::int64_t batch, heads, kv_heads, queries, keys, dim;
  std::int64_t window_left, window_right;  // −1: open
  std::int32_t type;                       // of q, k, v and out: 0 f32, 1 bf16, 2 f16
  std::int32_t causal;
  std::int32_t mask_is_bool;
  std::int32_t mask_is_full;
  std::int32_t threads;
};

const char* rapt_peer_attention(const RaptPeerCall* call) {
  return message_of([&] {
    const RaptPeerCall& c = *call;
    rapt::AttentionOptions options{.causal = c.causal != 0};
    if (c.window_left >= 0) options.window.left = c.window_left;
    if (c.window_right >= 0) options.window.right = c.window_right;
    options.alignment = rapt::Alignment::bottom_right();
    options.threads = c.threads;
    if (c.mask != nullptr) {
      const rapt::Dims shape =
          c.mask_is_full != 0 ? rapt::Dims{c.batch, c.heads, c.queries, c.keys} : rapt::Dims{1, 1, c.queries, c.keys};
      const rapt::DType dtype = c.mask_is_bool != 0 ? rapt::DType::boolean : rapt::DType::f32;
      const rapt::ConstTensorView mask(c.mask, dtype, shape);
      options.masks.push_back(c.mask_is_bool != 0 ? rapt::Mask::keep(mask) : rapt::Mask::add(mask));
    }
    const rapt::DType type = c.type == 0 ? rapt::DType::f32 : c.type == 1 ? rapt::DType::bf16 : rapt::DType::f16;
    const rapt::Dims of_queries{c.batch, c.heads, c.queries, c.dim}, of_keys{c.batch, c.kv_heads, c.keys, c.dim};
    rapt::AttentionOutputs outputs;
    outputs.out = rapt::TensorView(c.out, type, of_queries);
    if (c.mean_weights != nullptr) {
      const rapt::TensorView weights(c.mean_weights, {c.batch, c.queries, c.keys});
      outputs.captures.push_back({.to = weights, .of = {.mean_over_heads = true}});
    }
    rapt::attention(outputs, rapt::ConstTensorView(c.query, type, of_queries),
                    rapt::ConstTensorView(c.key, type, of_keys), rapt::ConstTensorView(c.value, type, of_keys),
                    options);
  });
}

// training.py declares the same fields in the same order. Tensors are f32, contiguous and (B, H, L, D); lse is (B, H,
// L).
struct RaptPeerBackward {
  const float* query;
  const float* key;
  const float* value;
  const float* dout;
  float* out;  // forward's results
  float* lse;
  float* dquery;
  float* dkey;
  float* dvalue;
  std::int64_t batch, heads, length, dim;
  std::int32_t causal, threads;

  rapt::Dims shape() const { return {batch, heads, length, dim}; }
  rapt::ConstTensorView view(const float* data) const { return {data, shape()}; }
  rapt::TensorView view(float* data) const { return {data, shape()}; }
  rapt::TensorView lse_view() const { return {lse, {batch, heads, length}}; }
  rapt::AttentionOptions options() const {
    rapt::AttentionOptions options{.causal = causal != 0};
    options.threads = threads;
    return options;
  }
};

// The forward call, which must run before rapt_peer_backward.
const char* rapt_peer_forward_of_backward(const RaptPeerBackward* call) {
  return message_of([&] {
    const RaptPeerBackward& c = *call;
    rapt::attention({.out = c.view(c.out), .lse = c.lse_view()}, c.view(c.query), c.view(c.key), c.view(c.value),
                    c.options());
  });
}

const char* rapt_peer_backward(const RaptPeerBackward* call) {
  return message_of([&] {
    const RaptPeerBackward& c = *call;
    rapt::attention_backward({.dquery = c.view(c.dquery), .dkey = c.view(c.dkey), .dvalue = c.view(c.dvalue)},
                             {.dout = c.view(c.dout), .out = c.view(c.out), .lse = c.lse_view()}, c.view(c.query),
                             c.view(c.key), c.view(c.value), c.options());
  });
}

// layers.py declares the same fields in the same order. A layer of self-attention: f32, contiguous, batch first, with E
// numbers in a token.
struct RaptPeerLayer {
  const float* in_proj_weight;   // (3·E, E)
  const float* out_proj_weight;  // (E, E)
  const float* out_proj_bias;    // (E)
  std::int64_t embed, heads;
  double dropout;  // the rate in training
};

struct RaptPeerLayerCall {
  const float* x;       // (B, L, E)
  float* out;           // (B, L, E)
  float* mean_weights;  // null, or (B, L, L)
  std::int64_t batch, length;
  std::int32_t causal, threads;
};

struct RaptPeerLayerHandle {
  rapt::MultiHeadAttention layer;
  rapt::LayerWorkspace workspace{};
  rapt::LayerActivations kept{};
  std::vector<rapt::Tensor> gradients{};
  std::uint64_t step = 0;
};

// Makes a layer without biases of q, k and v. The parameters are copied.
const char* rapt_peer_layer_new(const RaptPeerLayer* from, RaptPeerLayerHandle** made) {
  return message_of([&] {
    const std::int64_t e = from->embed;
    rapt::MultiHeadAttentionConfig config{.embed_size = e, .heads = from->heads};
    config.bias = false;
    config.output_bias = true;
    config.batch_first = true;
    config.dropout = from->dropout;
    auto handle = std::make_unique<RaptPeerLayerHandle>(RaptPeerLayerHandle{rapt::MultiHeadAttention(config)});
    handle->layer.set_parameter("in_proj_weight", rapt::ConstTensorView(from->in_proj_weight, {3 * e, e}));
    handle->layer.set_parameter("out_proj.weight", rapt::ConstTensorView(from->out_proj_weight, {e, e}));
    handle->layer.set_parameter("out_proj.bias", rapt::ConstTensorView(from->out_proj_bias, {e}));
    *made = handle.release();
  });
}

void rapt_peer_layer_delete(RaptPeerLayerHandle* handle) { delete handle; }

const char* rapt_peer_layer_forward(RaptPeerLayerHandle* handle, const RaptPeerLayerCall* call) {
  return message_of([&] {
    const RaptPeerLayerCall& c = *call;
    const rapt::Dims shape{c.batch, c.length, handle->layer.config().embed_size};
    rapt::LayerOptions options;
    options.attention.causal = c.causal != 0;
    options.attention.threads = c.threads;
    options.workspace = &handle->workspace;
    rapt::LayerOutputs outputs{.out = rapt::TensorView(c.out, shape)};
    if (c.mean_weights != nullptr) {
      options.weights = rapt::ReturnWeights::mean;
      outputs.weights = rapt::TensorView(c.mean_weights, {c.batch, c.length, c.length});
    }
    handle->layer.forward(outputs, rapt::ConstTensorView(c.x, shape), {}, {}, options);
  });
}

// training.py declares the same fields in the same order. All tensors are (B, L, E).
struct RaptPeerStep {
  const float* x;
  const float* dout;
  float* out;
  float* dx;
  std::int64_t batch, length;
  std::int32_t causal, threads;
};

// Forward and backward, as after an optimizer step: parameters are packed again, dropout draws new numbers, and
// gradients start at zero.
const char* rapt_peer_layer_train(RaptPeerLayerHandle* handle, const RaptPeerStep* call) {
  return message_of([&] {
    const RaptPeerStep& c = *call;
    handle->layer.change_parameters([](std::size_t, const rapt::TensorView&) {});
    if (handle->gradients.empty()) handle->gradients = handle->layer.zero_gradients();
    for (rapt::Tensor& each : handle->gradients) std::ranges::fill(each.values<float>(), 0.0F);
    const rapt::Dims shape{c.batch, c.length, handle->layer.config().embed_size};
    const rapt::ConstTensorView x(c.x, shape);
    rapt::LayerOptions options;
    options.attention.causal = c.causal != 0;
    options.attention.threads = c.threads;
    options.attention.dropout.seed = ++handle->step;
    options.training = true;
    options.workspace = &handle->workspace;
    options.keep = &handle->kept;
    handle->layer.forward({.out = rapt::TensorView(c.out, shape)}, x, {}, {}, options);
    handle->layer.backward({.dquery = rapt::TensorView(c.dx, shape), .parameters = handle->gradients},
                           {rapt::ConstTensorView(c.dout, shape), {}}, handle->kept, x, {}, {}, options);
  });
}

// The gradient of in_proj_weight (0), out_proj.weight (1) or out_proj.bias (2), from the last step.
const float* rapt_peer_layer_gradient(const RaptPeerLayerHandle* handle, std::int32_t which) {
  return handle->gradients[static_cast<std::size_t>(which)].values<float>().data();
}

const char* rapt_peer_instruction_set() {
  static const std::string name = [] {
    for (const rapt::InstructionSetInfo& each : rapt::instruction_sets()) {
      if (each.in_use) return each.name;
    }
    return std::string("none");
  }();
  return name.c_str();
}

}  // extern "C"
