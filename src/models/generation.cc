#include "models/generation.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/text.h"
#include "rapt/error.h"
#include "rapt/random.h"

namespace rapt::models {
namespace {

// exp((x − the largest) / temperature) of each logit, and their sum.
struct Exponentials {
  std::vector<double> each;
  double sum = 0;
};

Exponentials exponentials_of(std::span<const float> logits, double temperature) {
  const double largest = *std::max_element(logits.begin(), logits.end());
  Exponentials all;
  for (const float x : logits) {
    all.each.push_back(std::exp((double{x} - largest) / temperature));
    all.sum += all.each.back();
  }
  return all;
}

std::span<const float> numbers_of(const ConstTensorView& logits) {
  return {logits.data_as<float>(), static_cast<std::size_t>(logits.count())};
}

}  // namespace

std::vector<Likely> most_likely(const ConstTensorView& logits, std::size_t count, double temperature) {
  const std::span<const float> row = numbers_of(logits);
  std::vector<std::size_t> order(row.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  const auto end = order.begin() + static_cast<std::ptrdiff_t>(std::min(count, order.size()));
  std::partial_sort(order.begin(), end, order.end(),
                    [&](std::size_t a, std::size_t b) { return row[a] != row[b] ? row[a] > row[b] : a < b; });
  std::vector<Likely> list;
  const Exponentials all = temperature > 0 ? exponentials_of(row, temperature) : Exponentials();
  for (auto at = order.begin(); at != end; ++at) {
    const double certain = list.empty() ? 1.0 : 0.0;
    list.push_back({static_cast<std::int32_t>(*at), temperature > 0 ? all.each[*at] / all.sum : certain});
  }
  return list;
}

Generation::Generation(const Model& model, std::span<const std::int32_t> prompt, const GenerationOptions& options)
    : model_(model), options_(options), off_(model.config(), options.off), fresh_(prompt.begin(), prompt.end()) {
  const ModelConfig& config = model.config();
  if (model.predicts() != Predicts::next) {
    throw Error(text("a ", name_of(config.family), " model does not predict the next token; only gpt2 does"));
  }
  check_tokens(config, prompt);
  const std::int64_t room = config.most_tokens() - std::ssize(fresh_);
  const std::int64_t length = std::ssize(fresh_) + (options.most > 0 ? std::min(options.most, room) : room);
  for (std::int64_t n = 0; n < config.layers; ++n) {
    caches_.emplace_back(KvCacheConfig{.kv_heads = config.heads, .head_size = config.head_size(), .length = length});
    caches_.back().add();
  }
}

Likely Generation::next() {
  check_tokens(model_.config(), fresh_, length_);
  const Parts& parts = model_.parts();
  Pass pass(parts, fresh_, off_, &caches_);
  const Tensor last = run_layers(pass);
  length_ += std::ssize(fresh_);
  logits_ = parts.predictor->logits(last.view().slice(0, last.size(0) - 1, last.size(0)));
  const Likely chosen = options_.temperature > 0 ? drawn() : most_likely(logits_, 1).front();
  fresh_ = {chosen.token};
  ++steps_;
  return chosen;
}

Likely Generation::drawn() const {
  const Exponentials all = exponentials_of(numbers_of(logits_), options_.temperature);
  // A number in [0, 1) that depends only on the seed and the step.
  const PhiloxCounter words = philox4x32_10({steps_, 0, 0, 0}, philox_key(options_.seed));
  double left = static_cast<double>(words[0]) * 0x1p-32 * all.sum;
  std::size_t token = 0;
  while (token + 1 < all.each.size() && left >= all.each[token]) left -= all.each[token++];
  return {static_cast<std::int32_t>(token), all.each[token] / all.sum};
}

}  // namespace rapt::models
