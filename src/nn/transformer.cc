// The public interface of the model: validates arguments.
#include "rapt/transformer.h"

#include <cstddef>
#include <utility>

#include "attention/checks.h"
#include "nn/transformer_model.h"

namespace rapt {

namespace {

void check_tokens(const Checks& checks, const TransformerConfig& config, std::span<const std::int32_t> tokens,
                  std::int64_t batch, std::int64_t before) {
  const auto count = static_cast<std::int64_t>(tokens.size());
  checks.require(batch > 0 && count > 0 && count % batch == 0, "there are ", count, " tokens for ", batch,
                 " batch rows; all rows must have the same number, at least one");
  checks.require(before + count / batch <= config.context, "a sequence of ", before + count / batch,
                 " tokens is longer than the context, ", config.context);
  for (std::size_t t = 0; t < tokens.size(); ++t) {
    checks.require(tokens[t] >= 0 && tokens[t] < config.vocabulary, "tokens[", t, "] is ", tokens[t],
                   "; it must be at least 0 and less than the vocabulary, ", config.vocabulary);
  }
}

}  // namespace

TransformerCache::TransformerCache() = default;
TransformerCache::TransformerCache(TransformerCache&&) noexcept = default;
TransformerCache& TransformerCache::operator=(TransformerCache&&) noexcept = default;
TransformerCache::~TransformerCache() = default;
std::int64_t TransformerCache::length() const { return state_ == nullptr ? 0 : state_->length; }

Transformer::Transformer(const TransformerConfig& config, std::uint64_t seed)
    : model_(std::make_unique<Model>(config, seed)) {}
Transformer::Transformer(Transformer&&) noexcept = default;
Transformer& Transformer::operator=(Transformer&&) noexcept = default;
Transformer::~Transformer() = default;

const TransformerConfig& Transformer::config() const { return model_->config; }
void Transformer::set_causal(bool causal) { model_->config.causal = causal; }

Tensor Transformer::logits(std::span<const std::int32_t> tokens, std::int64_t batch,
                           std::vector<Tensor>* weights) const {
  check_tokens(Checks("Transformer::logits"), model_->config, tokens, batch, 0);
  if (weights != nullptr) weights->clear();
  return model_->infer(tokens, {.batch = batch, .length = std::ssize(tokens) / batch, .weights = weights});
}

Tensor Transformer::logits(std::span<const std::int32_t> tokens, TransformerCache& cache) const {
  const TransformerConfig& config = model_->config;
  check_tokens(Checks("Transformer::logits"), config, tokens, 1, cache.length());
  const Checks checks("Transformer::logits");
  checks.require(config.dtype == DType::f32, "a cache holds f32; this model is f64");
  checks.require(config.causal,
                 "a cache requires a causal model; this one is not causal, so earlier tokens would have to be "
                 "recomputed: give all tokens at once");
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
                 " tokens; give one for each, or kNoTarget to ignore it");
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
  for (nn::Block& block : model_->blocks) {
    const std::string& first = model_->list[block.first_of_attention].name;
    const std::string prefix = first.substr(0, first.find("attention.") + 10);
    if (!name.starts_with(prefix)) continue;
    return block.attention.set_parameter(name.substr(prefix.size()), value);
  }
  for (nn::Trained& one : model_->list) {
    if (one.name != name) continue;
    checks.shaped(name, value, one.value.shape(), "that of the model");
    copy(value, one.value);
    return;
  }
  checks.fail("there is no parameter \"", name, "\"");
}

}  // namespace rapt
