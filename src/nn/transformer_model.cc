// The model: its steps in execution order, and their gradients.
#include "nn/transformer_model.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "attention/checks.h"
#include "core/elements.h"
#include "core/engine.h"
#include "core/memory.h"
#include "core/text.h"
#include "rapt/random.h"

namespace rapt {

namespace {

TransformerConfig checked(const TransformerConfig& config) {
  const Checks checks("Transformer");
  for (const auto& [name, value] :
       {std::pair("vocabulary", config.vocabulary), std::pair("context", config.context),
        std::pair("width", config.width), std::pair("layers", config.layers), std::pair("heads", config.heads)}) {
    checks.require(value > 0, name, " is ", value, "; it must be positive");
  }
  checks.require(config.width % config.heads == 0, "width ", config.width, " is not a multiple of heads ", config.heads,
                 "; heads must divide width");
  checks.require(config.hidden >= 0, "hidden is ", config.hidden, "; it must be positive, or 0 for attention only");
  checks.require(config.dropout >= 0.0 && config.dropout < 1.0, "dropout is ", config.dropout,
                 "; it must be at least 0 and less than 1");
  checks.require(config.dtype == DType::f32 || config.dtype == DType::f64, "dtype is ", config.dtype,
                 "; it must be f32 or f64");
  return config;
}

// Numbers from a normal distribution with the given standard deviation. They depend only on seed and stream, so the
// order in which parameters are drawn does not matter.
void draw_normal(std::uint64_t seed, std::uint32_t stream, double deviation, Tensor& to) {
  const PhiloxKey key = philox_key(seed);
  for (std::int64_t n = 0; n < to.count(); n += 2) {
    const auto place = static_cast<std::uint64_t>(n / 2);
    const PhiloxCounter words = philox4x32_10(
        {static_cast<std::uint32_t>(place), static_cast<std::uint32_t>(place >> 32), stream, 0x7452616eU}, key);
    const double radius = std::sqrt(-2.0 * std::log((words[0] + 1.0) * 0x1p-32));
    const double angle = 2.0 * 3.14159265358979323846 * words[1] * 0x1p-32;
    const double pair[] = {radius * std::cos(angle) * deviation, radius * std::sin(angle) * deviation};
    for (std::int64_t i = n; i < std::min(n + 2, to.count()); ++i) {
      store(to.view().data(), to.dtype(), i, pair[i - n]);
    }
  }
}

void add(const TensorView& to, const ConstTensorView& x) {
  device_row(to.device()).layer->add(to, x, core::pool_workers());
}

}  // namespace

Transformer::Model::Model(const TransformerConfig& given, std::uint64_t seed) : config(checked(given)) {
  const std::int64_t width = config.width;
  const auto table = [&](const char* name, std::int64_t rows, double deviation) {
    const std::size_t index = add_parameter(name, {rows, width}, false);
    draw_normal(seed, static_cast<std::uint32_t>(index), deviation, list[index].value);
    return index;
  };
  tokens = table("tokens.weight", config.vocabulary, 1.0);
  positions = table("positions.weight", config.context, 1.0);
  for (std::int64_t n = 0; n < config.layers; ++n) add_block(n, seed);
  last_norm = add_norm("norm");
  output = table("output.weight", config.vocabulary, 1.0 / std::sqrt(static_cast<double>(width)));
  list[output].decays = true;
}

std::size_t Transformer::Model::add_parameter(const std::string& name, const Dims& shape, bool decays) {
  list.push_back({name, Tensor(shape, config.dtype), decays});
  return list.size() - 1;
}

std::size_t Transformer::Model::add_norm(const std::string& name) {
  const std::size_t index = add_parameter(name + ".weight", {config.width}, false);
  for (std::int64_t n = 0; n < config.width; ++n) store(list[index].value.view().data(), config.dtype, n, 1.0);
  add_parameter(name + ".bias", {config.width}, false);
  return index;
}

std::size_t Transformer::Model::add_linear(const std::string& name, std::int64_t inputs, std::int64_t outputs,
                                           std::uint64_t seed) {
  const std::size_t index = add_parameter(name + ".weight", {outputs, inputs}, true);
  draw_normal(seed, static_cast<std::uint32_t>(index), 1.0 / std::sqrt(static_cast<double>(inputs)), list[index].value);
  add_parameter(name + ".bias", {outputs}, false);
  return index;
}

void Transformer::Model::add_block(std::int64_t n, std::uint64_t seed) {
  MultiHeadAttentionConfig attention;
  attention.embed_size = config.width, attention.heads = config.heads, attention.batch_first = true;
  attention.dropout = attention.output_dropout = config.dropout, attention.dtype = config.dtype;
  nn::Block block(attention, seed + 1 + static_cast<std::uint64_t>(n));
  const std::string name = text("layers.", n, ".");
  block.norm1 = add_norm(name + "norm1");
  block.first_of_attention = list.size();
  for (const NamedTensor& parameter : block.attention.parameters()) {
    list.push_back({name + "attention." + parameter.name, Tensor(), parameter.value.rank() == 2});
  }
  if (config.hidden > 0) {
    block.norm2 = add_norm(name + "norm2");
    block.up = add_linear(name + "mlp.up", config.width, config.hidden, seed);
    block.down = add_linear(name + "mlp.down", config.hidden, config.width, seed);
  }
  blocks.push_back(std::move(block));
}

void Transformer::Model::begin_training() {
  if (!progress.empty()) return;
  for_each([&](std::size_t, const std::string&, const ConstTensorView& view) {
    progress.push_back({Tensor(view.shape(), config.dtype), Adam(view.shape(), config.dtype)});
  });
}

// ---------------------------------------------------------------- forward

// (T, E): token embedding plus position embedding.
Tensor Transformer::Model::embedded(std::span<const std::int32_t> ids, const nn::Pass& pass) const {
  Tensor x = rows(pass.batch * pass.length, config.width);
  embed(x, ids, value(tokens));
  const ConstTensorView places = value(positions).slice(0, pass.before, pass.before + pass.length);
  for (std::int64_t b = 0; b < pass.batch; ++b) {
    add(x.view().slice(0, b * pass.length, (b + 1) * pass.length), places);
  }
  return x;
}

LayerOptions Transformer::Model::attention_options(const nn::Pass& pass, std::size_t n) const {
  LayerOptions options;
  options.training = pass.training;
  options.attention.causal = config.causal;
  options.attention.dropout.seed = pass.seed + n;
  options.attention.dropout.batch_start = pass.batch_start;
  return options;
}

// Replaces x with the output of the block.
void Transformer::Model::through_block(std::size_t n, const nn::Pass& pass, Tensor& x,
                                       nn::BlockActivations* keep) const {
  const nn::Block& block = blocks[n];
  const std::int64_t count = x.view().size(0);
  Tensor normed = rows(count, config.width), added = rows(count, config.width);
  layer_norm(normed, x, value(block.norm1), value(block.norm1 + 1));
  LayerOptions options = attention_options(pass, n);
  TensorView weights;
  if (pass.weights != nullptr) {
    options.weights = ReturnWeights::per_head;
    pass.weights->emplace_back(Dims{pass.batch, config.heads, pass.length, pass.length}, config.dtype);
    weights = pass.weights->back().view();
  }
  if (pass.caches != nullptr) options.cache = &(*pass.caches)[n];
  if (keep != nullptr) options.keep = &keep->kept;
  block.attention.forward({added.view().reshape(tokens_shape(pass)), weights},
                          normed.view().reshape(tokens_shape(pass)), {}, {}, options);
  if (keep != nullptr) keep->x = x.clone(), keep->normed = std::move(normed);
  add(x, added);
  if (config.hidden == 0) return;
  Tensor inner = rows(count, config.hidden), activated = rows(count, config.hidden);
  normed = rows(count, config.width);
  layer_norm(normed, x, value(block.norm2), value(block.norm2 + 1));
  linear(inner, normed, value(block.up), value(block.up + 1));
  gelu(activated, inner);
  linear(added, activated, value(block.down), value(block.down + 1));
  if (keep != nullptr) {
    keep->middle = x.clone(), keep->middle_normed = std::move(normed);
    keep->inner = std::move(inner), keep->activated = std::move(activated);
  }
  add(x, added);
}

// Logits (T, V) from the output of the last block; `normed` receives that output after the layer norm.
Tensor Transformer::Model::logits(const Tensor& x, Tensor& normed) const {
  normed = rows(x.view().size(0), config.width);
  layer_norm(normed, x, value(last_norm), value(last_norm + 1));
  Tensor result = rows(x.view().size(0), config.vocabulary);
  linear(result, normed, value(output));
  return result;
}

Tensor Transformer::Model::infer(std::span<const std::int32_t> ids, const nn::Pass& pass) const {
  Tensor x = embedded(ids, pass), normed;
  for (std::size_t n = 0; n < blocks.size(); ++n) through_block(n, pass, x, nullptr);
  const Tensor result = logits(x, normed);
  return Tensor::copy_of(result.view().reshape({pass.batch, pass.length, config.vocabulary}));
}

// ---------------------------------------------------------------- backward

double Transformer::Model::train(std::span<const std::int32_t> ids, std::span<const std::int32_t> targets,
                                 const nn::Pass& pass, double scale) {
  begin_training();
  kept.resize(blocks.size());
  Tensor x = embedded(ids, pass), normed;
  for (std::size_t n = 0; n < blocks.size(); ++n) through_block(n, pass, x, &kept[n]);
  Tensor dlogits = logits(x, normed);
  const double loss = cross_entropy(dlogits, dlogits, targets, scale);

  Tensor dx = rows(x.view().size(0), config.width);
  linear_backward({dx, gradient(output), {}}, dlogits, normed, value(output));
  layer_norm_backward({dx, gradient(last_norm), gradient(last_norm + 1)}, dx, x, value(last_norm));
  for (std::size_t n = blocks.size(); n-- > 0;) back_through_block(n, pass, dx);
  embed_backward(gradient(tokens), dx, ids);
  const TensorView places = gradient(positions).slice(0, pass.before, pass.before + pass.length);
  for (std::int64_t b = 0; b < pass.batch; ++b) {
    add(places, dx.view().slice(0, b * pass.length, (b + 1) * pass.length));
  }
  return loss;
}

// dx, the gradient of the block's output, becomes that of its input: the gradient of each step is added to the residual
// gradient.
void Transformer::Model::back_through_block(std::size_t n, const nn::Pass& pass, Tensor& dx) {
  const nn::Block& block = blocks[n];
  const nn::BlockActivations& at = kept[n];
  Tensor dnormed = rows(dx.view().size(0), config.width);
  if (config.hidden > 0) {
    Tensor dinner = rows(dx.view().size(0), config.hidden);
    linear_backward({dinner, gradient(block.down), gradient(block.down + 1)}, dx, at.activated, value(block.down));
    gelu_backward(dinner, dinner, at.inner);
    linear_backward({dnormed, gradient(block.up), gradient(block.up + 1)}, dinner, at.middle_normed, value(block.up));
    layer_norm_backward({dnormed, gradient(block.norm2), gradient(block.norm2 + 1)}, dnormed, at.middle,
                        value(block.norm2));
    add(dx, dnormed);
  }
  std::vector<Tensor> gradients;
  const std::size_t count = block.attention.parameters().size();
  for (std::size_t p = 0; p < count; ++p) {
    gradients.push_back(std::move(progress[block.first_of_attention + p].gradient));
  }
  LayerOptions options = attention_options(pass, n);
  options.workspace = &workspace;
  block.attention.backward({.dquery = dnormed.view().reshape(tokens_shape(pass)), .parameters = gradients},
                           {dx.view().reshape(tokens_shape(pass)), {}}, at.kept,
                           at.normed.view().reshape(tokens_shape(pass)), {}, {}, options);
  for (std::size_t p = 0; p < count; ++p) {
    progress[block.first_of_attention + p].gradient = std::move(gradients[p]);
  }
  layer_norm_backward({dnormed, gradient(block.norm1), gradient(block.norm1 + 1)}, dnormed, at.x, value(block.norm1));
  add(dx, dnormed);
}

double Transformer::Model::step(const AdamOptions& options, double clip) {
  begin_training();
  std::vector<Tensor> gradients;
  for (nn::Progress& one : progress) gradients.push_back(std::move(one.gradient));
  const double norm = clip_gradients(gradients, clip > 0.0 ? clip : std::numeric_limits<double>::infinity());
  const auto change = [&](std::size_t index, const TensorView& parameter) {
    AdamOptions own = options;
    if (!list[index].decays) own.weight_decay = 0.0;
    progress[index].adam.step(parameter, gradients[index], own);
  };
  for (std::size_t index = 0; index < list.size(); ++index) {
    if (list[index].value.count() > 0) change(index, list[index].value.view());
  }
  for (nn::Block& block : blocks) {
    block.attention.change_parameters(
        [&](std::size_t n, const TensorView& value) { change(block.first_of_attention + n, value); });
  }
  for (std::size_t n = 0; n < gradients.size(); ++n) {
    progress[n].gradient = std::move(gradients[n]);
    core::zero(progress[n].gradient.view().data(),
               static_cast<std::size_t>(progress[n].gradient.count()) * size_of(config.dtype),
               progress[n].gradient.device());
  }
  return norm;
}

}  // namespace rapt
