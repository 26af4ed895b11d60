#include "models/network/parts.h"

#include <string>
#include <utility>

#include "core/text.h"
#include "models/files.h"
#include "models/network/names.h"
#include "rapt/error.h"
#include "rapt/layers.h"

namespace rapt::models {
namespace {

std::string weight_of(const std::string& name) { return name + ".weight"; }
std::string bias_of(const std::string& name) { return name + ".bias"; }

// Weights in 16 bits stay so in memory; products convert them exactly.
PackedMatrix packed(const ConstTensorView& weight) {
  return PackedMatrix(weight, {.dtype = weight.dtype() == DType::f64 ? DType::f32 : weight.dtype()});
}

// Reads the parts of one model. GPT-2 stores the weight of a linear layer as (inputs, outputs), the others as (outputs,
// inputs).
class Reader {
 public:
  Reader(const ModelFiles& files, const ModelConfig& config)
      : config_(config),
        names_(tensor_names(config.family)),
        weights_(files, weight_of(std::string(names_.tokens))),
        transposed_(config.family == Family::gpt2) {
    const SizeEntries& entries = size_entries(config.family);
    width_ = {entries.width, config.width}, hidden_ = {entries.hidden, config.hidden};
    vocabulary_ = {entries.vocabulary, config.vocabulary}, positions_ = {entries.positions, config.positions};
    types_ = {entries.types, config.types};
    require_layers(files, entries);
  }

  ConstTensorView tokens() const { return table(names_.tokens, vocabulary_); }
  ConstTensorView positions() const { return table(names_.positions, positions_); }
  ConstTensorView types() const { return names_.types.empty() ? ConstTensorView() : table(names_.types, types_); }

  std::optional<Norm> input_norm() const { return norm_or_none(names_.input_norm); }
  std::optional<Norm> output_norm() const { return norm_or_none(names_.output_norm); }

  Block block(std::int64_t n) const {
    const std::string layer = text(names_.layers, n, ".");
    const auto name = [&](std::string_view part) { return layer + std::string(part); };
    return {attention(name(names_.attention)), norm(weights_, name(names_.attention_norm)),
            norm(weights_, name(names_.mlp_norm)), linear(weights_, name(names_.up), width_, hidden_),
            linear(weights_, name(names_.down), hidden_, width_)};
  }

  // Fills an empty place, because a Predictor cannot be moved.
  void predictor(std::optional<Predictor>& place) const {
    const Weights beside = weights_.above();
    const std::string decoder(names_.decoder);
    if (names_.predictor_dense.empty()) {
      const bool own = beside.has(weight_of(decoder));
      if (!config_.tied && !own) return;
      place.emplace(std::nullopt, Norm(), config_.activation, config_.tied ? tokens() : decoder_of(beside), Tensor());
      return;
    }
    const std::string dense(names_.predictor_dense);
    if (!beside.has(weight_of(dense)) || (!config_.tied && !beside.has(weight_of(decoder)))) return;
    std::string bias(names_.decoder_bias);
    if (!beside.has(bias)) bias = bias_of(decoder);
    // RoBERTa's predictions always use this function.
    const Activation activation = config_.family == Family::roberta ? Activation::gelu : config_.activation;
    place.emplace(linear(beside, dense, width_, width_), norm(beside, std::string(names_.predictor_norm)), activation,
                  config_.tied ? tokens() : decoder_of(beside), beside.f32(bias, {vocabulary_}));
  }

 private:
  // As many layers as config.json says, and no more.
  void require_layers(const ModelFiles& files, const SizeEntries& entries) const {
    const auto first_of = [&](std::int64_t layer) {
      return text(names_.layers, layer, ".", names_.attention, names_.projections[0], ".weight");
    };
    std::int64_t count = 0;
    while (count <= config_.layers && weights_.has(first_of(count))) ++count;
    if (count == config_.layers) return;
    const bool more = count > config_.layers;
    throw FileError(text("model: ", files.where(), ": config.json says ", entries.layers, " is ", config_.layers,
                         "; the weights have ", more ? "at least " : "", count, " layers, ", more ? "with" : "and no",
                         " \"", weights_.prefix(), first_of(more ? config_.layers : count), "\""));
  }

  ConstTensorView table(std::string_view name, const Size& rows) const {
    return weights_.view(weight_of(std::string(name)), {rows, width_});
  }
  ConstTensorView decoder_of(const Weights& beside) const {
    return beside.view(weight_of(std::string(names_.decoder)), {vocabulary_, width_});
  }

  Norm norm(const Weights& weights, const std::string& name) const {
    return {weights.f32(weight_of(name), {width_}), weights.f32(bias_of(name), {width_}), config_.epsilon};
  }
  std::optional<Norm> norm_or_none(std::string_view name) const {
    if (name.empty()) return std::nullopt;
    return norm(weights_, std::string(name));
  }

  Linear linear(const Weights& weights, const std::string& name, const Size& inputs, const Size& outputs) const {
    const ConstTensorView stored = transposed_ ? weights.view(weight_of(name), {inputs, outputs}).transpose(0, 1)
                                               : weights.view(weight_of(name), {outputs, inputs});
    return {packed(stored), weights.f32(bias_of(name), {outputs})};
  }

  MultiHeadAttention attention(const std::string& under) const {
    std::vector<NamedTensor> tensors;
    for (const std::string_view each : names_.projections) {
      if (each.empty()) continue;
      const std::string name(each);
      const bool packed = transposed_ && each == names_.projections[0];  // q, k and v side by side
      const Size outputs{width_.entry, width_.value, packed ? 3 : 1};
      tensors.push_back(
          {weight_of(name),
           weights_.view(weight_of(under + name), transposed_ ? Shape{width_, outputs} : Shape{outputs, width_})});
      tensors.push_back({bias_of(name), weights_.view(bias_of(under + name), {outputs})});
    }
    return MultiHeadAttention::load(tensors, {.heads = config_.heads, .batch_first = true, .dtype = DType::f32}).layer;
  }

  const ModelConfig& config_;
  const TensorNames& names_;
  Weights weights_;
  bool transposed_;
  Size width_, hidden_, vocabulary_, positions_, types_;
};

}  // namespace

Tensor Linear::operator()(const ConstTensorView& x) const {
  Tensor y({x.size(0), weight.outputs()}, DType::f32);
  weight.multiply(x, y, {.bias = bias});
  return y;
}

void Norm::operator()(const TensorView& y, const ConstTensorView& x) const { layer_norm(y, x, weight, bias, epsilon); }

Predictor::Predictor(std::optional<Linear> dense, Norm norm, Activation activation, const ConstTensorView& decoder,
                     Tensor bias)
    : dense_(std::move(dense)),
      norm_(std::move(norm)),
      activation_(activation),
      decoder_(decoder),
      bias_(std::move(bias)) {}

Tensor Predictor::logits(const ConstTensorView& hidden) const {
  std::call_once(once_, [&] { packed_ = packed(decoder_); });
  Tensor logits({hidden.size(0), packed_.outputs()}, DType::f32);
  if (!dense_) {
    packed_.multiply(hidden, logits);
    return logits;
  }
  Tensor x = (*dense_)(hidden);
  activate(activation_, x, x);
  norm_(x, x);
  packed_.multiply(x, logits, {.bias = bias_});
  return logits;
}

Parts::Parts(const ModelFiles& files) : config(ModelConfig::read(files)) {
  const Reader reader(files, config);
  tokens = reader.tokens(), positions = reader.positions(), types = reader.types();
  input_norm = reader.input_norm(), output_norm = reader.output_norm();
  for (std::int64_t n = 0; n < config.layers; ++n) blocks.push_back(reader.block(n));
  reader.predictor(predictor);
}

}  // namespace rapt::models
