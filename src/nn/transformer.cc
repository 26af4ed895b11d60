// The model: its steps in the order in which they happen, and back.
#include "rapt/transformer.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <limits>
#include <map>
#include <optional>
#include <utility>

#include "attention/checks.h"
#include "core/text.h"
#include "nn/row_work.h"
#include "rapt/multi_head_attention.h"
#include "rapt/random.h"
#include "rapt/safetensors.h"

namespace rapt {

namespace {

TransformerConfig checked(const TransformerConfig& config) {
  const Checks checks("Transformer");
  for (const auto& [name, value] :
       {std::pair("vocabulary", config.vocabulary), std::pair("context", config.context),
        std::pair("width", config.width), std::pair("layers", config.layers), std::pair("heads", config.heads)}) {
    checks.require(value > 0, name, " is ", value, "; it must be positive");
  }
  checks.require(config.width % config.heads == 0, "width ", config.width, " is no multiple of heads ", config.heads,
                 "; every head has as many numbers");
  checks.require(config.hidden >= 0, "hidden is ", config.hidden, "; it must be positive, or 0 for attention only");
  checks.require(config.dropout >= 0.0 && config.dropout < 1.0, "dropout is ", config.dropout,
                 "; it must be at least 0 and less than 1");
  checks.require(config.dtype == DType::f32 || config.dtype == DType::f64, "dtype is ", config.dtype,
                 "; it must be f32 or f64");
  return config;
}

// One parameter outside attention, or the place of one inside.
struct Trained {
  std::string name;
  Tensor value;  // empty for those of an attention layer
  bool decays;
};

// What training needs of one parameter.
struct Progress {
  Tensor gradient;
  Adam adam;
};

// Numbers of a normal distribution with the given deviation, a pure function of seed and name: the order in which
// parameters are drawn does not matter.
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
  nn::with_float_type(to.dtype(), [&](auto type) {
    using T = decltype(type);
    nn::for_rows(to.size(0), to.size(1), [&](std::int64_t t) {
      T* sums = nn::row_of<T>(to, t);
      const T* from = nn::row_of<T>(x, t);
      for (std::int64_t n = 0; n < to.size(1); ++n) sums[n] += from[n];
    });
  });
}

// The weights of one block.
struct Block {
  Block(const MultiHeadAttentionConfig& config, std::uint64_t seed) : attention(config, seed) {}

  MultiHeadAttention attention;
  // Indices of parameters; the MLP's are unused where there is none.
  std::size_t norm1 = 0, norm2 = 0, up = 0, down = 0;
  std::size_t first_of_attention = 0;
};

// What one block computes on the way, as (T, …).
struct BlockActivations {
  Tensor x, normed;  // what comes in, and its norm
  Tensor middle, middle_normed, inner, activated;
  LayerActivations kept;
};

void check_tokens(const Checks& checks, const TransformerConfig& config, std::span<const std::int32_t> tokens,
                  std::int64_t batch, std::int64_t before) {
  const auto count = static_cast<std::int64_t>(tokens.size());
  checks.require(batch > 0 && count > 0 && count % batch == 0, "there are ", count, " tokens for ", batch,
                 " batch rows; every row has as many, and one at least");
  checks.require(before + count / batch <= config.context, "a sequence of ", before + count / batch,
                 " tokens is longer than the context, ", config.context);
  for (std::size_t t = 0; t < tokens.size(); ++t) {
    checks.require(tokens[t] >= 0 && tokens[t] < config.vocabulary, "tokens[", t, "] is ", tokens[t],
                   "; it must be at least 0 and less than the vocabulary, ", config.vocabulary);
  }
}

}  // namespace

struct TransformerCache::State {
  std::vector<KvCache> layers;
  std::int64_t length = 0;
};

TransformerCache::TransformerCache() = default;
TransformerCache::TransformerCache(TransformerCache&&) noexcept = default;
TransformerCache& TransformerCache::operator=(TransformerCache&&) noexcept = default;
TransformerCache::~TransformerCache() = default;
std::int64_t TransformerCache::length() const { return state_ == nullptr ? 0 : state_->length; }

struct Transformer::Model {
  Model(const TransformerConfig& given, std::uint64_t seed) : config(checked(given)) {
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

  std::size_t add_parameter(const std::string& name, const Dims& shape, bool decays) {
    list.push_back({name, Tensor(shape, config.dtype), decays});
    return list.size() - 1;
  }
  std::size_t add_norm(const std::string& name) {
    const std::size_t index = add_parameter(name + ".weight", {config.width}, false);
    for (std::int64_t n = 0; n < config.width; ++n) store(list[index].value.view().data(), config.dtype, n, 1.0);
    add_parameter(name + ".bias", {config.width}, false);
    return index;
  }
  std::size_t add_linear(const std::string& name, std::int64_t inputs, std::int64_t outputs, std::uint64_t seed) {
    const std::size_t index = add_parameter(name + ".weight", {outputs, inputs}, true);
    draw_normal(seed, static_cast<std::uint32_t>(index), 1.0 / std::sqrt(static_cast<double>(inputs)),
                list[index].value);
    add_parameter(name + ".bias", {outputs}, false);
    return index;
  }
  void add_block(std::int64_t n, std::uint64_t seed) {
    MultiHeadAttentionConfig attention;
    attention.embed_size = config.width, attention.heads = config.heads, attention.batch_first = true;
    attention.dropout = attention.output_dropout = config.dropout, attention.dtype = config.dtype;
    attention.context_length = config.context;
    Block block(attention, seed + 1 + static_cast<std::uint64_t>(n));
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

  // Calls visit(index, name, view) for each parameter.
  template <class Visit>
  void for_each(const Visit& visit) const {
    std::size_t index = 0;
    const auto visit_own = [&](std::size_t end) {
      for (; index < end; ++index) visit(index, list[index].name, list[index].value.view());
    };
    for (const Block& block : blocks) {
      visit_own(block.first_of_attention);
      for (const NamedTensor& parameter : block.attention.parameters()) {
        visit(index, list[index].name, parameter.value);
        ++index;
      }
    }
    visit_own(list.size());
  }

  ConstTensorView value(std::size_t index) const { return list[index].value.view(); }
  TensorView gradient(std::size_t index) { return progress[index].gradient.view(); }

  void begin_training() {
    if (!progress.empty()) return;
    for_each([&](std::size_t, const std::string&, const ConstTensorView& view) {
      progress.push_back({Tensor(view.shape(), config.dtype), Adam(view.shape(), config.dtype)});
    });
  }

  // ---------------------------------------------------------------- forward

  // One call through the model; what it leaves out is undefined or null.
  struct Pass {
    std::int64_t batch, length;
    std::int64_t before = 0;  // tokens of the sequence that came earlier
    std::vector<KvCache>* caches = nullptr;
    std::vector<Tensor>* weights = nullptr;
    bool training = false;
    std::uint64_t seed = 0;
    std::int64_t batch_start = 0;
  };

  Tensor rows(std::int64_t count, std::int64_t width) const { return Tensor({count, width}, config.dtype); }
  Dims tokens_shape(const Pass& pass) const { return {pass.batch, pass.length, config.width}; }

  // (T, E): the token's row and its place's.
  Tensor embedded(std::span<const std::int32_t> ids, const Pass& pass) const {
    Tensor x = rows(pass.batch * pass.length, config.width);
    embed(x, ids, value(tokens));
    const ConstTensorView places = value(positions).slice(0, pass.before, pass.before + pass.length);
    for (std::int64_t b = 0; b < pass.batch; ++b) {
      add(x.view().slice(0, b * pass.length, (b + 1) * pass.length), places);
    }
    return x;
  }

  LayerOptions attention_options(const Pass& pass, std::size_t n) const {
    LayerOptions options;
    options.training = pass.training;
    options.attention.dropout.seed = pass.seed + n;
    options.attention.dropout.batch_start = pass.batch_start;
    return options;
  }

  // x becomes what the block makes of it.
  void through_block(std::size_t n, const Pass& pass, Tensor& x, BlockActivations* keep) const {
    const Block& block = blocks[n];
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

  // (T, V) from what leaves the last block; `normed` becomes its norm.
  Tensor logits(const Tensor& x, Tensor& normed) const {
    normed = rows(x.view().size(0), config.width);
    layer_norm(normed, x, value(last_norm), value(last_norm + 1));
    Tensor result = rows(x.view().size(0), config.vocabulary);
    linear(result, normed, value(output));
    return result;
  }

  Tensor infer(std::span<const std::int32_t> ids, const Pass& pass) const {
    Tensor x = embedded(ids, pass), normed;
    for (std::size_t n = 0; n < blocks.size(); ++n) through_block(n, pass, x, nullptr);
    const Tensor result = logits(x, normed);
    return Tensor::copy_of(result.view().reshape({pass.batch, pass.length, config.vocabulary}));
  }

  // ---------------------------------------------------------------- backward

  double train(std::span<const std::int32_t> ids, std::span<const std::int32_t> targets, const Pass& pass,
               double scale) {
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

  // dx, of what the block made, becomes that of what it was given: each step's gradient is added to what goes past it.
  void back_through_block(std::size_t n, const Pass& pass, Tensor& dx) {
    const Block& block = blocks[n];
    const BlockActivations& at = kept[n];
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

  double step(const AdamOptions& options, double clip) {
    begin_training();
    std::vector<Tensor> gradients;
    for (Progress& one : progress) gradients.push_back(std::move(one.gradient));
    const double norm = clip_gradients(gradients, clip > 0.0 ? clip : std::numeric_limits<double>::infinity());
    const auto change = [&](std::size_t index, const TensorView& parameter) {
      AdamOptions own = options;
      if (!list[index].decays) own.weight_decay = 0.0;
      progress[index].adam.step(parameter, gradients[index], own);
    };
    for (std::size_t index = 0; index < list.size(); ++index) {
      if (list[index].value.count() > 0) change(index, list[index].value.view());
    }
    for (Block& block : blocks) {
      block.attention.change_parameters(
          [&](std::size_t n, const TensorView& value) { change(block.first_of_attention + n, value); });
    }
    for (std::size_t n = 0; n < gradients.size(); ++n) {
      progress[n].gradient = std::move(gradients[n]);
      std::memset(progress[n].gradient.view().data(), 0,
                  static_cast<std::size_t>(progress[n].gradient.count()) * size_of(config.dtype));
    }
    return norm;
  }

  TransformerConfig config;
  std::vector<Trained> list;
  std::vector<Block> blocks;
  std::vector<Progress> progress;  // empty until training begins
  std::size_t tokens = 0, positions = 0, last_norm = 0, output = 0;
  std::vector<BlockActivations> kept;
  LayerWorkspace workspace;
};

Transformer::Transformer(const TransformerConfig& config, std::uint64_t seed)
    : model_(std::make_unique<Model>(config, seed)) {}
Transformer::Transformer(Transformer&&) noexcept = default;
Transformer& Transformer::operator=(Transformer&&) noexcept = default;
Transformer::~Transformer() = default;

const TransformerConfig& Transformer::config() const { return model_->config; }

Tensor Transformer::logits(std::span<const std::int32_t> tokens, std::int64_t batch,
                           std::vector<Tensor>* weights) const {
  check_tokens(Checks("Transformer::logits"), model_->config, tokens, batch, 0);
  if (weights != nullptr) weights->clear();
  return model_->infer(tokens, {.batch = batch, .length = std::ssize(tokens) / batch, .weights = weights});
}

Tensor Transformer::logits(std::span<const std::int32_t> tokens, TransformerCache& cache) const {
  const TransformerConfig& config = model_->config;
  check_tokens(Checks("Transformer::logits"), config, tokens, 1, cache.length());
  Checks("Transformer::logits").require(config.dtype == DType::f32, "a cache holds f32; this model is f64");
  if (cache.state() == nullptr) {
    cache.state() = std::make_unique<TransformerCache::State>();
    for (std::int64_t n = 0; n < config.layers; ++n) {
      KvCache& layer = cache.state()->layers.emplace_back(
          KvCacheConfig{.kv_heads = config.heads, .head_size = config.width / config.heads, .length = config.context});
      layer.add();
    }
  }
  const std::int64_t length = std::ssize(tokens);
  Tensor result =
      model_->infer(tokens, {.batch = 1, .length = length, .before = cache.length(), .caches = &cache.state()->layers});
  cache.state()->length += length;
  return result;
}

double Transformer::add_gradients(std::span<const std::int32_t> tokens, std::span<const std::int32_t> targets,
                                  std::int64_t batch, double scale, std::uint64_t seed, std::int64_t batch_start) {
  const Checks checks("Transformer::add_gradients");
  check_tokens(checks, model_->config, tokens, batch, 0);
  checks.require(targets.size() == tokens.size(), "there are ", targets.size(), " targets for ", tokens.size(),
                 " tokens; give one for each, kNoTarget where none counts");
  return model_->train(tokens, targets,
                       {.batch = batch,
                        .length = std::ssize(tokens) / batch,
                        .training = true,
                        .seed = seed,
                        .batch_start = batch_start},
                       scale);
}

double Transformer::step(const AdamOptions& options, double clip) { return model_->step(options, clip); }

std::vector<NamedTensor> Transformer::parameters() const {
  std::vector<NamedTensor> all;
  model_->for_each([&](std::size_t, const std::string& name, const ConstTensorView& value) {
    all.push_back({name, value});
  });
  return all;
}

std::vector<NamedTensor> Transformer::gradients() const {
  model_->begin_training();
  std::vector<NamedTensor> all;
  for (std::size_t n = 0; n < model_->list.size(); ++n) {
    all.push_back({model_->list[n].name, model_->progress[n].gradient.view()});
  }
  return all;
}

void Transformer::set_parameter(std::string_view name, const ConstTensorView& value) {
  const Checks checks("Transformer::set_parameter");
  for (Block& block : model_->blocks) {
    const std::string& first = model_->list[block.first_of_attention].name;
    const std::string prefix = first.substr(0, first.find("attention.") + 10);
    if (!name.starts_with(prefix)) continue;
    return block.attention.set_parameter(name.substr(prefix.size()), value);
  }
  for (Trained& one : model_->list) {
    if (one.name != name) continue;
    checks.shaped(name, value, one.value.shape(), "that of the model");
    copy(value, one.value);
    return;
  }
  checks.fail("there is no parameter \"", name, "\"");
}

// ---------------------------------------------------------------- files

namespace {

constexpr const char* kFormat = "rapt.transformer.1";
constexpr std::string_view kFirst = "adam.first.", kSecond = "adam.second.";

// The numbers of a config, by the names they have in a file.
template <class Config, class Visit>
void for_each_number(Config& config, const Visit& visit) {
  visit("vocabulary", config.vocabulary), visit("context", config.context), visit("width", config.width);
  visit("layers", config.layers), visit("heads", config.heads), visit("hidden", config.hidden);
}

template <class Number>
Number number_of(const std::string& path, const std::map<std::string, std::string>& metadata, const std::string& name) {
  const auto found = metadata.find(name);
  Number number{};
  const bool good = found != metadata.end() && [&] {
    const std::string& words = found->second;
    const auto [end, error] = std::from_chars(words.data(), words.data() + words.size(), number);
    return error == std::errc() && end == words.data() + words.size();
  }();
  if (good) return number;
  throw Error(text("Transformer::load: ", path, ": the metadata has ",
                   found == metadata.end() ? "no " + name : name + " \"" + found->second + "\", which is no number"));
}

}  // namespace

void Transformer::save(const std::string& path, bool training) const {
  std::map<std::string, std::string> metadata{{"format", kFormat}};
  for_each_number(model_->config,
                  [&](const char* name, std::int64_t value) { metadata[name] = std::to_string(value); });
  metadata["dropout"] = text(model_->config.dropout);
  std::vector<NamedTensor> tensors = parameters();
  if (training) {
    model_->begin_training();
    metadata["steps"] = std::to_string(model_->progress[0].adam.steps());
    for (std::size_t n = 0; n < model_->list.size(); ++n) {
      const Adam& adam = model_->progress[n].adam;
      tensors.push_back({std::string(kFirst) + model_->list[n].name, adam.first().view()});
      tensors.push_back({std::string(kSecond) + model_->list[n].name, adam.second().view()});
    }
  }
  write_safetensors(path, tensors, metadata);
}

Transformer Transformer::load(const std::string& path) {
  const SafetensorsFile file(path);
  const std::map<std::string, std::string>& metadata = file.metadata();
  const auto format = metadata.find("format");
  if (format == metadata.end() || format->second != kFormat) {
    throw Error(text("Transformer::load: ", path, " is no model of rapt's: its metadata says format \"",
                     format == metadata.end() ? "" : format->second, "\" instead of \"", kFormat, "\""));
  }
  TransformerConfig config;
  for_each_number(
      config, [&](const char* name, std::int64_t& value) { value = number_of<std::int64_t>(path, metadata, name); });
  config.dropout = number_of<double>(path, metadata, "dropout");
  config.dtype = file.at("tokens.weight").dtype();
  Transformer loaded(config);
  for (const NamedTensor& parameter : loaded.parameters())
    loaded.set_parameter(parameter.name, file.at(parameter.name));
  if (!metadata.contains("steps")) return loaded;
  const auto steps = number_of<std::int64_t>(path, metadata, "steps");
  Model& model = *loaded.model_;
  model.begin_training();
  for (std::size_t n = 0; n < model.list.size(); ++n) {
    const std::string& name = model.list[n].name;
    model.progress[n].adam.restore(steps, file.at(std::string(kFirst) + name), file.at(std::string(kSecond) + name));
  }
  return loaded;
}

}  // namespace rapt
