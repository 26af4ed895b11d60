// The layer: its steps in execution order, with the numbers of rapt/multi_head_attention.h.
#include "rapt/multi_head_attention.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "attention/planned.h"
#include "attention/resolve.h"
#include "nn/added_keys.h"
#include "nn/backward.h"
#include "nn/kv_cache_state.h"
#include "nn/layer_steps.h"
#include "nn/output_dropout.h"

namespace rapt {

using nn::LayerCall;
using nn::Projection;

struct MultiHeadAttention::Layer {
  Device device() const { return parameters.list().front().value.device(); }

  explicit Layer(const MultiHeadAttentionConfig& given) : config(nn::checked_config(given)), parameters(config) {
    if (config.rotary) rotary.emplace(config.head_size, *config.rotary);
  }

  MultiHeadAttentionConfig config;
  nn::Parameters parameters;
  nn::Projections projections{config, parameters};
  std::optional<Rotary> rotary;
  nn::LayerParts parts{parameters, projections, rotary};
};

namespace {

// One forward call of the layer. Shapes are (B, L, …) and (B, H, L, D), for any memory layout.
class Forward : nn::LayerSteps {
 public:
  Forward(const LayerCall& call, const nn::LayerParts& layer, LayerWorkspace::Memory& memory)
      : LayerSteps(call, layer, memory), at_(call, keep_in().at_least(nn::Activations::bytes(call), call.device())) {
    if (call_.options.cache != nullptr) find_sequences();
  }

  void run() {
    project_inputs();
    if (layer_.rotary) rotate(at_, /*back=*/false);
    if (call_.options.cache == nullptr) {
      attend();
    } else {
      append_kv();
      try {
        attend();
      } catch (...) {
        rollback_kv();
        throw;
      }
    }
    project_output();
    if (call_.options.training && call_.config.output_dropout > 0.0) nn::drop_output(call_, call_.out, workers_);
    if (call_.options.keep != nullptr) label_kept();
  }

 private:
  GrowingBytes& keep_in() {
    return call_.options.keep != nullptr ? call_.options.keep->memory().bytes : memory_.activations;
  }
  void label_kept() {
    LayerActivations::Memory& kept = call_.options.keep->memory();
    kept.filled = true, kept.one_input = call_.one_input;
    kept.query = call_.query.shape(), kept.key = call_.key.shape();
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
    if (at_.qkv.defined()) {
      project(Projection::qkv, call_.query, at_.given(at_.qkv));
    } else {
      project(Projection::q, call_.query, at_.q);
      if (call_.one_memory && !call_.config.separate_projections) {
        project(Projection::kv, call_.key, at_.given(at_.kv));
      } else {
        project(Projection::k, call_.key, at_.given(at_.k));
        project(Projection::v, call_.value, at_.given(at_.v));
      }
    }
    if (call_.added_keys > 0) nn::write_added_keys(call_.config, layer_.parameters, at_.k, at_.v, workers_);
  }

  // Step 3. Appends this call's keys and values to the cache, and gets a view of all its keys and values.
  void append_kv() {
    KvCache& cache = *call_.options.cache;
    cache.state().append(memory_.sequences, split_heads(ConstTensorView(at_.k), call_.kv_heads),
                         split_heads(ConstTensorView(at_.v), call_.kv_heads), memory_.tokens, workers_);
    cache.view(memory_.sequences, memory_.cached);
  }
  // Removes the tokens of this call from the cache, because attention failed.
  void rollback_kv() {
    for (std::size_t b = 0; b < memory_.sequences.size(); ++b) {
      call_.options.cache->truncate(memory_.sequences[b], memory_.starts[b]);
    }
  }

  // Step 4.
  void attend() {
    const AttentionOptions& options = attention_options();
    AttentionOutputs& outputs = memory_.outputs;
    outputs.out = split_heads(at_.combined, call_.heads);
    outputs.lse = call_.options.keep != nullptr ? at_.lse : call_.lse;
    list_captures(outputs.captures);
    const ConstTensorView q = split_heads(at_.q, call_.heads);
    const bool cached = call_.options.cache != nullptr;
    const ConstTensorView k = cached ? memory_.cached.key : split_heads(ConstTensorView(at_.k), call_.kv_heads);
    const ConstTensorView v = cached ? memory_.cached.value : split_heads(ConstTensorView(at_.v), call_.kv_heads);
    Arena arena(memory_.lists.at_least(problem_bytes(q, options)));
    const PlannedForward planned = plan_forward(nn::kForward, outputs, q, k, v, options, arena, Outputs::checked);
    planned.run(memory_.scratch.at_least(planned.plan.sizes, call_.device()));
    if (call_.options.keep != nullptr && call_.lse.defined()) ops_.copy(at_.lse, call_.lse, workers_);
    if (call_.added_keys == 0) return;
    for (const Capture& capture : outputs.captures) nn::put_added_keys_last(call_.added_keys, capture.to, workers_);
  }
  // The caller's captures come first and in order, so that error messages use the caller's indices; the weights come
  // last.
  void list_captures(std::vector<Capture>& list) const {
    list.resize(call_.captures.size() + (call_.weights.defined() ? 1 : 0));
    for (std::size_t n = 0; n < call_.captures.size(); ++n) {
      list[n] = call_.captures[n];
      list[n].to = call_.with_batch(list[n].to);
    }
    if (!call_.weights.defined()) return;
    list.back() = {
        Stage::dropped_weights, call_.weights, {.mean_over_heads = call_.options.weights == ReturnWeights::mean}};
  }

  // Step 5.
  void project_output() { project(Projection::out, at_.combined, call_.out); }

  void project(Projection which, const ConstTensorView& x, const TensorView& y) {
    const EngineMatrix& matrix = layer_.projections.matrix(which, call_.options.attention.engine, workers_);
    products_.multiply_tokens(matrix, x, y, layer_.projections.bias(which));
  }

  nn::Activations at_;
};

void run_forward(const LayerCall& call, const nn::LayerParts& layer) {
  std::optional<LayerWorkspace> own;
  LayerWorkspace* workspace = call.options.workspace;
  Forward(call, layer, workspace != nullptr ? workspace->memory() : own.emplace().memory()).run();
}

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
  LayerCall call(layer_->config, layer_->device(), query, key, value, options);
  const nn::LayerShapes shapes = call.shapes();
  LayerResult result{Tensor(shapes.out, query.dtype(), query.device()), {}};
  TensorView weights;
  if (options.weights != ReturnWeights::none) {
    result.weights =
        Tensor(shapes.weights, layer_->config.dtype == DType::f64 ? DType::f64 : DType::f32, query.device());
    weights = result.weights;
  }
  const LayerOutputs outputs{.out = result.out, .weights = weights};
  call.write_to(outputs);
  run_forward(call, layer_->parts);
  return result;
}

void MultiHeadAttention::forward(const LayerOutputs& outputs, const ConstTensorView& query, const ConstTensorView& key,
                                 const ConstTensorView& value, const LayerOptions& options) const {
  LayerCall call(layer_->config, layer_->device(), query, key, value, options);
  call.write_to(outputs);
  run_forward(call, layer_->parts);
}

void MultiHeadAttention::backward(const LayerGradients& gradients, const LayerUpstream& upstream,
                                  const LayerActivations& kept, const ConstTensorView& query,
                                  const ConstTensorView& key, const ConstTensorView& value,
                                  const LayerOptions& options) const {
  std::optional<LayerWorkspace> own;
  const nn::BackwardCall call(layer_->config, layer_->parameters, gradients, upstream, kept, query, key, value,
                              options);
  nn::backward(call, layer_->parts,
               options.workspace != nullptr ? options.workspace->memory() : own.emplace().memory());
}

std::vector<Tensor> MultiHeadAttention::zero_gradients() const {
  std::vector<Tensor> list;
  for (const nn::Parameter& parameter : layer_->parameters.list()) {
    list.emplace_back(parameter.value.shape(), nn::type_between_steps(layer_->config), parameter.value.device());
  }
  return list;
}

std::vector<NamedTensor> MultiHeadAttention::parameters() const {
  std::vector<NamedTensor> list;
  for (const nn::Parameter& parameter : layer_->parameters.list()) {
    list.push_back({parameter.name, parameter.value.view()});
  }
  return list;
}

void MultiHeadAttention::set_parameter(std::string_view name, const ConstTensorView& value) {
  const Checks checks("MultiHeadAttention::set_parameter", value.device());
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
  layer_->projections.discard_packed();
}

void MultiHeadAttention::change_parameters(const std::function<void(std::size_t n, const TensorView& value)>& change) {
  layer_->projections.discard_packed();  // first, so that no packed weights are stale if `change` throws
  std::vector<nn::Parameter>& list = layer_->parameters.list();
  for (std::size_t n = 0; n < list.size(); ++n) change(n, list[n].value.view());
}

MultiHeadAttention MultiHeadAttention::of_zeros(const MultiHeadAttentionConfig& config) {
  return MultiHeadAttention(std::make_unique<Layer>(config));
}

TensorView MultiHeadAttention::writable_parameter(std::string_view name) {
  layer_->projections.discard_packed();
  return layer_->parameters.find(name)->value.view();
}

MultiHeadAttention MultiHeadAttention::to(Device device) const {
  auto copied = std::make_unique<Layer>(layer_->config);
  std::vector<nn::Parameter>& list = copied->parameters.list();
  for (std::size_t n = 0; n < list.size(); ++n) list[n].value = layer_->parameters.list()[n].value.to(device);
  copied->projections.find_biases();
  if (copied->rotary) copied->rotary = copied->rotary->to(device);
  return MultiHeadAttention(std::move(copied));
}

MultiHeadAttention MultiHeadAttention::slice(std::int64_t index, std::int64_t count) const {
  const Checks checks("MultiHeadAttention::slice");
  checks.require(layer_->config.slice.count == 1, "this layer is slice ", layer_->config.slice.index, " of ",
                 layer_->config.slice.count, " already; slice the whole layer");
  MultiHeadAttentionConfig config = layer_->config;
  config.slice = {index, count};
  auto part = std::make_unique<Layer>(config);
  part->parameters.take_from(layer_->parameters);
  MultiHeadAttention sliced(std::move(part));
  return layer_->device() == Device{} ? std::move(sliced) : sliced.to(layer_->device());
}

LayerWorkspace::LayerWorkspace() : memory_(std::make_unique<Memory>()) {}
LayerWorkspace::LayerWorkspace(LayerWorkspace&&) noexcept = default;
LayerWorkspace& LayerWorkspace::operator=(LayerWorkspace&&) noexcept = default;
LayerWorkspace::~LayerWorkspace() = default;
std::size_t LayerWorkspace::bytes() const {
  std::size_t sum = 0;
  for (const GrowingBytes* part : memory_->all()) sum += part->bytes();
  return sum;
}
std::size_t LayerWorkspace::device_bytes() const {
  std::size_t sum = 0;
  for (const GrowingBytes* part : memory_->all()) sum += part->device_bytes();
  return sum;
}

LayerActivations::LayerActivations() : memory_(std::make_unique<Memory>()) {}
LayerActivations::LayerActivations(LayerActivations&&) noexcept = default;
LayerActivations& LayerActivations::operator=(LayerActivations&&) noexcept = default;
LayerActivations::~LayerActivations() = default;
std::size_t LayerActivations::bytes() const { return memory_->bytes.bytes(); }

ConstTensorView mask_of_batch(const ConstTensorView& mask) {
  const Checks checks("mask_of_batch");
  checks.require(mask.rank() == 3, "mask has shape ", mask.shape(), "; it must be (B, Lq, Lk)");
  return mask.unsqueeze(1);
}

ConstTensorView mask_of_heads(const ConstTensorView& mask, std::int64_t heads) {
  const Checks checks("mask_of_heads");
  checks.require(mask.rank() == 3, "mask has shape ", mask.shape(), "; it must be (B·Hq, Lq, Lk)");
  checks.require(heads > 0 && mask.size(0) % heads == 0, "mask has ", mask.size(0),
                 " planes, which is not a multiple of ", heads, " heads; it must be (B·Hq, Lq, Lk)");
  return mask.split(0, mask.size(0) / heads);
}

ConstTensorView mask_of_keys(const ConstTensorView& mask) {
  const Checks checks("mask_of_keys");
  checks.require(mask.rank() == 2, "mask has shape ", mask.shape(), "; it must be (B, Lk)");
  return mask.unsqueeze(1).unsqueeze(1);
}

}  // namespace rapt
