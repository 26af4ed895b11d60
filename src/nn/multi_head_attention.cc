// The layer: its steps in the order in which they happen.
#include "rapt/multi_head_attention.h"

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <utility>

#include "core/text.h"
#include "nn/added_keys.h"
#include "nn/layer_call.h"
#include "nn/layer_workspace.h"
#include "nn/output_dropout.h"
#include "nn/parameters.h"
#include "nn/projections.h"

namespace rapt {

using nn::LayerCall;
using nn::Projection;

struct MultiHeadAttention::Layer {
  explicit Layer(const MultiHeadAttentionConfig& given) : config(nn::checked_config(given)), parameters(config) {
    if (config.rotary) rotary.emplace(config.head_size, *config.rotary);
  }

  MultiHeadAttentionConfig config;
  nn::Parameters parameters;
  nn::Projections projections{config, parameters};
  std::optional<Rotary> rotary;
};

namespace {

// How much memory attention needs. It is here that attention looks at its options: what it refuses, the layer refuses.
std::size_t workspace_bytes(const AttentionOutputs& outputs, const ConstTensorView& q, const ConstTensorView& k,
                            const ConstTensorView& v, const AttentionOptions& options) {
  try {
    return attention_workspace_bytes(outputs, q, k, v, options);
  } catch (const Error& error) {
    const std::string_view what = error.what();
    throw Error(text(nn::kForward, what.substr(what.find(':'))));
  }
}

// The way of one call through the layer. Shapes are (B, L, …) and (B, H, L, D), whatever order the memory has.
class Forward {
 public:
  Forward(const LayerCall& call, const nn::Parameters& parameters, const nn::Projections& projections,
          const std::optional<Rotary>& rotary, LayerWorkspace::Memory& memory)
      : call_(call), parameters_(parameters), projections_(projections), rotary_(rotary), memory_(memory) {
    if (call_.options.cache != nullptr) find_sequences();
    lay_out();
  }

  void run() {
    project_inputs();
    if (rotary_) rotate();
    if (call_.options.cache == nullptr) {
      attend();
    } else {
      remember();
      try {
        attend();
      } catch (...) {
        forget();
        throw;
      }
    }
    project_output();
    if (call_.options.training && call_.config.output_dropout > 0.0) nn::drop_output(call_);
  }

 private:
  // Where the projections write. Tokens lie in the caller's order, so that one product can take them all; the added
  // keys come before the others, where they do not disturb lengths or the causal order.
  void lay_out() {
    const nn::Widths widths(call_.config, call_.config.slice.count);
    const std::int64_t added = call_.added_keys;
    const std::int64_t key_rows = call_.batch() * (added + call_.key_length());
    const std::int64_t query_rows = call_.batch() * call_.query_length();
    const bool packed = call_.one_input && !call_.config.separate_projections;
    const auto count = [](std::int64_t rows, std::int64_t width) { return rows * width; };
    const std::int64_t inputs =
        packed ? count(key_rows, widths.all()) : count(query_rows, widths.query) + count(key_rows, 2 * widths.key);
    const auto bytes = static_cast<std::int64_t>(size_of(type()));
    Arena arena(memory_.activations.at_least(
        static_cast<std::size_t>((inputs + count(query_rows, widths.query)) * bytes) + 4 * Arena::kAlignment));

    if (packed) {
      qkv_ = tokens(arena, added + call_.key_length(), widths.all());
      q_ = qkv_.slice(2, 0, widths.query).slice(1, added, added + call_.query_length());
      kv_ = qkv_.slice(2, widths.query, widths.all());
    } else {
      q_ = tokens(arena, call_.query_length(), widths.query);
      kv_ = tokens(arena, added + call_.key_length(), 2 * widths.key);
    }
    k_ = kv_.slice(2, 0, widths.key);
    v_ = kv_.slice(2, widths.key, 2 * widths.key);
    combined_ = tokens(arena, call_.query_length(), widths.query);
  }

  void find_sequences() {
    memory_.sequences.clear(), memory_.tokens.clear(), memory_.starts.clear();
    for (std::int64_t b = 0; b < call_.batch(); ++b) {
      memory_.sequences.push_back(call_.sequence(b));
      memory_.tokens.push_back(call_.new_tokens(b));
      memory_.starts.push_back(call_.options.cache->length(call_.sequence(b)));
    }
  }

  // Step 1.
  void project_inputs() {
    const auto given = [&](const TensorView& all) { return all.slice(1, call_.added_keys, all.size(1)); };
    if (qkv_.defined()) {
      project(Projection::qkv, call_.query, given(qkv_));
    } else {
      project(Projection::q, call_.query, q_);
      if (call_.one_memory && !call_.config.separate_projections) {
        project(Projection::kv, call_.key, given(kv_));
      } else {
        project(Projection::k, call_.key, given(k_));
        project(Projection::v, call_.value, given(v_));
      }
    }
    if (call_.added_keys > 0) nn::write_added_keys(call_.config, parameters_, k_, v_);
  }

  // Step 2. What was added stands nowhere, and is not turned.
  void rotate() {
    const RotaryCall how = {call_.options.attention.threads, call_.options.attention.parallel_for};
    const TensorView keys = k_.slice(1, call_.added_keys, k_.size(1));
    rotary_->apply(split_heads(q_, call_.heads), positions(call_.options.attention.packed.query_starts, q_.size(1)),
                   how);
    rotary_->apply(split_heads(keys, call_.kv_heads),
                   positions(call_.options.attention.packed.key_starts, keys.size(1)), how);
  }

  // Step 3. The cache takes this call's keys and values, and gives back all there are.
  void remember() {
    KvCache& cache = *call_.options.cache;
    cache.append(memory_.sequences, split_heads(ConstTensorView(k_), call_.kv_heads),
                 split_heads(ConstTensorView(v_), call_.kv_heads), memory_.tokens);
    cache.view(memory_.sequences, memory_.cached);
  }
  // Where attention refuses the call, the cache is as it was before.
  void forget() {
    for (std::size_t b = 0; b < memory_.sequences.size(); ++b) {
      call_.options.cache->truncate(memory_.sequences[b], memory_.starts[b]);
    }
  }

  // Step 4.
  void attend() {
    const AttentionOptions& options = attention_options();
    AttentionOutputs& outputs = memory_.outputs;
    outputs.out = split_heads(combined_, call_.heads);
    outputs.captures.resize(call_.weights.defined() ? 1 : 0);
    if (call_.weights.defined()) {
      outputs.captures[0].to = call_.weights;
      outputs.captures[0].of.mean_over_heads = call_.options.weights == ReturnWeights::mean;
    }
    const ConstTensorView q = split_heads(q_, call_.heads);
    const bool cached = call_.options.cache != nullptr;
    const ConstTensorView k = cached ? memory_.cached.key : split_heads(ConstTensorView(k_), call_.kv_heads);
    const ConstTensorView v = cached ? memory_.cached.value : split_heads(ConstTensorView(v_), call_.kv_heads);
    memory_.attention.workspace = memory_.scratch.all();
    memory_.attention.workspace = memory_.scratch.at_least(workspace_bytes(outputs, q, k, v, options));
    attention(outputs, q, k, v, options);
    if (call_.weights.defined() && call_.added_keys > 0) nn::put_added_keys_last(call_.added_keys, call_.weights);
  }

  // Step 5.
  void project_output() { project(Projection::out, combined_, call_.out); }

  // The caller's options, for the heads of this slice, and with what the layer itself knows.
  const AttentionOptions& attention_options() {
    const MultiHeadAttentionConfig& config = call_.config;
    AttentionOptions& options = memory_.attention;
    options = call_.options.attention;
    options.workspace = {};
    options.dropout.rate = call_.options.training ? config.dropout : 0.0;
    options.dropout.head_start += config.slice.index * call_.heads;
    if (config.context_length > 0) {
      options.causal = true;
      if (options.alignment.kind == Alignment::Kind::unnamed) options.alignment.kind = Alignment::Kind::top_left;
    }
    if (config.slice.count > 1) take_own_heads(options);
    if (call_.added_keys > 0) nn::make_room_for_added_keys(call_, memory_.wide_masks, options);
    if (call_.options.cache != nullptr) {
      memory_.cached.apply(options);
      options.alignment.kind = Alignment::Kind::offset;
      options.alignment.values = memory_.starts;
    }
    return options;
  }

  // Options that are about every head are given for the whole layer.
  void take_own_heads(AttentionOptions& options) const {
    const std::int64_t first = call_.config.slice.index * call_.heads;
    for (Mask& mask : options.masks) {
      if (mask.view.rank() == 4 && mask.view.size(1) == call_.config.heads && call_.config.heads > 1) {
        mask.view = mask.view.slice(1, first, first + call_.heads);
      }
    }
    if (options.sinks.defined()) options.sinks = options.sinks.slice(0, first, first + call_.heads);
    if (options.alibi_slopes.empty()) return;
    options.alibi_slopes.erase(options.alibi_slopes.begin(), options.alibi_slopes.begin() + first);
    options.alibi_slopes.resize(static_cast<std::size_t>(call_.heads));
  }

  void project(Projection which, const ConstTensorView& x, const TensorView& y) {
    const AttentionOptions& options = call_.options.attention;
    nn::TokenProduct product = {projections_.matrix(which, options.engine),
                                {projections_.bias(which), options.threads, options.parallel_for, {}}};
    product.options.workspace = memory_.scratch.at_least(product.workspace_bytes(x, y));
    product(x, y);
  }

  // (B, length, width), in the caller's order.
  TensorView tokens(Arena& arena, std::int64_t length, std::int64_t width) const {
    const std::int64_t batch = call_.batch();
    const auto memory = arena.take<std::byte>(batch * length * width * static_cast<std::int64_t>(size_of(type())));
    if (call_.config.batch_first) return TensorView(memory.data(), type(), {batch, length, width});
    return TensorView(memory.data(), type(), {length, batch, width}).transpose(0, 1);
  }

  RotaryPositions positions(const std::vector<std::int64_t>& starts, std::int64_t length) {
    if (call_.options.cache != nullptr) return RotaryPositions::rows(memory_.starts);
    if (starts.empty()) return call_.options.position;
    std::vector<std::int64_t>& places = memory_.positions;  // each sequence begins anew
    places.resize(static_cast<std::size_t>(length));
    for (std::size_t n = 0; n + 1 < starts.size(); ++n) {
      std::iota(places.begin() + starts[n], places.begin() + starts[n + 1], call_.options.position);
    }
    return RotaryPositions::tokens(places);
  }

  // What lies between the steps is f32 for the 16-bit types too: each number is rounded once, at the end.
  DType type() const { return call_.config.dtype == DType::f64 ? DType::f64 : DType::f32; }

  const LayerCall& call_;
  const nn::Parameters& parameters_;
  const nn::Projections& projections_;
  const std::optional<Rotary>& rotary_;
  LayerWorkspace::Memory& memory_;

  TensorView qkv_;       // (B, added + L, all), where one product makes all three
  TensorView q_, kv_;    // (B, Lq, Hq·D), (B, added + Lk, 2·Hkv·D)
  TensorView k_, v_;     // (B, added + Lk, Hkv·D)
  TensorView combined_;  // (B, Lq, Hq·D): the heads side by side
};

}  // namespace

MultiHeadAttention::MultiHeadAttention(const MultiHeadAttentionConfig& config, std::uint64_t seed)
    : layer_(std::make_unique<Layer>(config)) {
  layer_->parameters.draw(seed);
}
MultiHeadAttention::MultiHeadAttention(std::unique_ptr<Layer> layer) : layer_(std::move(layer)) {}
MultiHeadAttention::MultiHeadAttention(MultiHeadAttention&&) noexcept = default;
MultiHeadAttention& MultiHeadAttention::operator=(MultiHeadAttention&&) noexcept = default;
MultiHeadAttention::~MultiHeadAttention() = default;

const MultiHeadAttentionConfig& MultiHeadAttention::config() const { return layer_->config; }

LayerResult MultiHeadAttention::forward(const ConstTensorView& query, const LayerOptions& options) const {
  return forward(query, {}, {}, options);
}

LayerResult MultiHeadAttention::forward(const ConstTensorView& query, const ConstTensorView& key,
                                        const ConstTensorView& value, const LayerOptions& options) const {
  const nn::LayerShapes shapes = LayerCall(layer_->config, query, key, value, options).shapes();
  LayerResult result{Tensor(shapes.out, query.dtype()), {}};
  TensorView weights;
  if (options.weights != ReturnWeights::none) {
    result.weights = Tensor(shapes.weights, layer_->config.dtype == DType::f64 ? DType::f64 : DType::f32);
    weights = result.weights;
  }
  forward({result.out, weights}, query, key, value, options);
  return result;
}

void MultiHeadAttention::forward(const LayerOutputs& outputs, const ConstTensorView& query, const ConstTensorView& key,
                                 const ConstTensorView& value, const LayerOptions& options) const {
  std::optional<LayerWorkspace> own;
  LayerCall call(layer_->config, query, key, value, options);
  call.write_to(outputs);
  Forward(call, layer_->parameters, layer_->projections, layer_->rotary,
          options.workspace != nullptr ? options.workspace->memory() : own.emplace().memory())
      .run();
}

std::vector<NamedTensor> MultiHeadAttention::parameters() const {
  std::vector<NamedTensor> list;
  for (const nn::Parameter& parameter : layer_->parameters.list()) {
    list.push_back({parameter.name, parameter.value.view()});
  }
  return list;
}

void MultiHeadAttention::set_parameter(std::string_view name, const ConstTensorView& value) {
  const Checks checks("MultiHeadAttention::set_parameter");
  nn::Parameter* parameter = layer_->parameters.find(name);
  if (parameter == nullptr) {
    std::string names;
    for (const nn::Parameter& known : layer_->parameters.list())
      names += (names.empty() ? "" : ", ") + std::string(known.name);
    checks.fail("there is no parameter \"", name, "\"; this layer has ", names);
  }
  checks.shaped(name, value, parameter->value.shape(), "that of the layer");
  checks.typed(name, value, {DType::f32, DType::bf16, DType::f16, DType::f64});
  copy(value, parameter->value);
  layer_->projections.forget();
}

MultiHeadAttention MultiHeadAttention::of_zeros(const MultiHeadAttentionConfig& config) {
  return MultiHeadAttention(std::make_unique<Layer>(config));
}

TensorView MultiHeadAttention::writable_parameter(std::string_view name) {
  layer_->projections.forget();
  return layer_->parameters.find(name)->value.view();
}

MultiHeadAttention MultiHeadAttention::slice(std::int64_t index, std::int64_t count) const {
  const Checks checks("MultiHeadAttention::slice");
  checks.require(layer_->config.slice.count == 1, "this layer is slice ", layer_->config.slice.index, " of ",
                 layer_->config.slice.count, " already; slice the whole layer");
  MultiHeadAttentionConfig config = layer_->config;
  config.slice = {index, count};
  auto part = std::make_unique<Layer>(config);
  part->parameters.take_from(layer_->parameters);
  return MultiHeadAttention(std::move(part));
}

LayerWorkspace::LayerWorkspace() : memory_(std::make_unique<Memory>()) {}
LayerWorkspace::LayerWorkspace(LayerWorkspace&&) noexcept = default;
LayerWorkspace& LayerWorkspace::operator=(LayerWorkspace&&) noexcept = default;
LayerWorkspace::~LayerWorkspace() = default;
std::size_t LayerWorkspace::bytes() const { return memory_->activations.all().size() + memory_->scratch.all().size(); }

ConstTensorView mask_of_batch(const ConstTensorView& mask) {
  const Checks checks("mask_of_batch");
  checks.require(mask.rank() == 3, "mask has shape ", mask.shape(), "; it must be (B, Lq, Lk)");
  return mask.unsqueeze(1);
}

ConstTensorView mask_of_heads(const ConstTensorView& mask, std::int64_t heads) {
  const Checks checks("mask_of_heads");
  checks.require(mask.rank() == 3, "mask has shape ", mask.shape(), "; it must be (B·Hq, Lq, Lk)");
  checks.require(heads > 0 && mask.size(0) % heads == 0, "mask has ", mask.size(0), " planes, no multiple of ", heads,
                 " heads; it must be (B·Hq, Lq, Lk)");
  return mask.split(0, mask.size(0) / heads);
}

ConstTensorView mask_of_keys(const ConstTensorView& mask) {
  const Checks checks("mask_of_keys");
  checks.require(mask.rank() == 2, "mask has shape ", mask.shape(), "; it must be (B, Lk)");
  return mask.unsqueeze(1).unsqueeze(1);
}

}  // namespace rapt
