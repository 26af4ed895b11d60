#include "models/network/pass.h"

#include <cmath>

#include "core/text.h"
#include "rapt/error.h"

namespace rapt::models {

SwitchedOff::SwitchedOff(const ModelConfig& config, std::span<const HeadPlace> heads)
    : masks_(static_cast<std::size_t>(config.layers)) {
  for (const auto& [layer, head] : heads) {
    if (layer < 0 || layer >= config.layers || head < 0 || head >= config.heads) {
      throw Error(text("there is no head ", layer, ".", head, "; layers are 0 to ", config.layers - 1,
                       " and heads 0 to ", config.heads - 1));
    }
    Tensor& mask = masks_[static_cast<std::size_t>(layer)];
    if (mask.count() == 0) mask = Tensor({1, config.heads, 1, 1}, DType::boolean);
    mask.view().at<bool>(0, head, 0, 0) = true;
  }
}

// A row without visible keys gives zeros, so a head that sees no key contributes nothing.
void SwitchedOff::apply(std::size_t layer, AttentionOptions& options) const {
  if (masks_[layer].count() > 0) options.masks.push_back(Mask::drop(masks_[layer].view()));
}

Pass::Pass(const Parts& parts, std::span<const std::int32_t> tokens, const SwitchedOff& off,
           std::vector<KvCache>* caches)
    : parts_(parts), tokens_(tokens), off_(off), caches_(caches) {
  if (caches != nullptr) before_ = caches->front().length(0);
}

// RoBERTa numbers only the tokens that are not padding; padding has the row before the first.
std::int64_t Pass::row_of_position(std::int64_t n) const {
  const ModelConfig& config = parts_.config;
  if (config.padding < 0) return before_ + n;
  if (tokens_[static_cast<std::size_t>(n)] == config.padding) return config.padding;
  std::int64_t row = config.first_position;
  for (std::int64_t i = 0; i < n; ++i) row += tokens_[static_cast<std::size_t>(i)] == config.padding ? 0 : 1;
  return row;
}

Tensor Pass::embedded() const {
  Tensor x({count(), parts_.config.width}, DType::f32), more({1, parts_.config.width}, DType::f32);
  for (std::int64_t n = 0; n < count(); ++n) {
    const TensorView row = x.view().slice(0, n, n + 1);
    copy(parts_.tokens.select(0, tokens_[static_cast<std::size_t>(n)]), row.select(0, 0));
    if (parts_.types.defined()) {  // one text: every token has the first type
      copy(parts_.types.select(0, 0), more.view().select(0, 0));
      add(row, more);
    }
    copy(parts_.positions.select(0, row_of_position(n)), more.view().select(0, 0));
    add(row, more);
  }
  return x;
}

Tensor Pass::attended(std::size_t layer, const Tensor& x) {
  const ModelConfig& config = parts_.config;
  const auto n = static_cast<std::int64_t>(layer);
  LayerOptions options;
  options.attention.causal = config.causal();
  if (!config.scales_scores || config.scales_by_layer) {
    const double size = config.scales_scores ? static_cast<double>(config.head_size()) : 1.0;
    options.attention.scale = 1.0 / std::sqrt(size) / (config.scales_by_layer ? static_cast<double>(n + 1) : 1.0);
  }
  off_.apply(layer, options.attention);
  if (caches_ != nullptr) options.cache = &(*caches_)[layer];
  TensorView seen;
  if (weights.count() > 0) {
    options.weights = ReturnWeights::per_head;
    seen = weights.view().slice(0, n, n + 1);  // (1, H, T, T): as if the layer were a batch of one text
  }
  Tensor y({count(), config.width}, DType::f32);
  const Dims batch{1, count(), config.width};
  parts_.blocks[layer].attention.forward({.out = y.view().reshape(batch), .weights = seen}, x.view().reshape(batch), {},
                                         {}, options);
  return y;
}

Tensor Pass::transformed(std::size_t layer, const ConstTensorView& x) {
  const Block& block = parts_.blocks[layer];
  Tensor inner = block.up(x);
  activate(parts_.config.activation, inner, inner);
  return block.down(inner);
}

void Pass::keep(std::size_t layer, const Tensor& x) {
  if (hidden.count() > 0) copy(x, hidden.view().select(0, static_cast<std::int64_t>(layer)));
}

void add(const TensorView& to, const ConstTensorView& x) {
  auto* sums = to.data_as<float>();
  const auto* more = x.data_as<float>();
  for (std::int64_t n = 0; n < to.count(); ++n) sums[n] += more[n];
}

Tensor run_layers(Pass& pass) { return pass.parts().config.family == Family::gpt2 ? run_gpt2(pass) : run_bert(pass); }

void check_tokens(const ModelConfig& config, std::span<const std::int32_t> tokens, std::int64_t before) {
  if (tokens.empty()) throw Error("there are no tokens; a model needs at least one");
  const std::int64_t count = before + std::ssize(tokens);
  if (count > config.most_tokens()) {
    throw Error(text("the text has ", count, " tokens; the model has positions for ", config.most_tokens()));
  }
  for (const std::int32_t token : tokens) {
    if (token >= 0 && token < config.vocabulary) continue;
    throw Error(text("a token has id ", token, "; the model has embeddings for ids 0 to ", config.vocabulary - 1));
  }
}

}  // namespace rapt::models
