#include "train/sampler.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numeric>

#include "rapt/error.h"

namespace rapt::train {

Sampler::Sampler(const Transformer& model, const std::vector<std::int32_t>& prompt, const SamplerOptions& options)
    : model_(model), options_(options), draw_(options.seed, Stream::sampling, 0), fresh_(prompt) {
  if (prompt.empty()) throw Error("Sampler: the prompt is empty; give at least one token");
  const std::int64_t over = std::ssize(fresh_) - model.config().context;
  if (over > 0) fresh_.erase(fresh_.begin(), fresh_.begin() + over);
}

Sampled Sampler::next() {
  if (full()) {
    past_.insert(past_.end(), fresh_.begin(), fresh_.end());
    const std::int64_t kept = std::max<std::int64_t>(1, model_.config().context / 2);
    fresh_.assign(past_.end() - std::min<std::int64_t>(kept, std::ssize(past_)), past_.end());
    past_.clear();
    cache_ = TransformerCache();
  }
  const Sampled chosen = choose(model_.logits(fresh_, cache_));
  past_.insert(past_.end(), fresh_.begin(), fresh_.end());
  fresh_ = {chosen.token};
  return chosen;
}

Sampled Sampler::choose(const Tensor& logits) {
  const auto row = logits.values<float>().last(static_cast<std::size_t>(model_.config().vocabulary));
  const double largest = *std::max_element(row.begin(), row.end());
  double sum = 0.0;
  for (const float x : row) sum += std::exp(double{x} - largest);
  const auto sampled = [&](std::size_t n) {
    return Sampled{static_cast<std::int32_t>(n), std::exp(double{row[n]} - largest) / sum};
  };
  if (options_.temperature == 0.0) {
    return sampled(static_cast<std::size_t>(std::max_element(row.begin(), row.end()) - row.begin()));
  }
  std::vector<std::size_t> order(row.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  if (options_.top_k > 0 && options_.top_k < std::ssize(row)) {
    // Ties go to the lower index, so that the result does not depend on the standard library's sort.
    const auto last = order.begin() + options_.top_k;
    std::partial_sort(order.begin(), last, order.end(),
                      [&](std::size_t a, std::size_t b) { return row[a] != row[b] ? row[a] > row[b] : a < b; });
    order.erase(last, order.end());
  }
  std::vector<double> upto;  // cumulative sums of the probabilities
  double total = 0.0;
  for (const std::size_t n : order) {
    upto.push_back(total += std::exp((double{row[n]} - largest) / options_.temperature));
  }
  const double at = draw_.uniform() * total;
  const auto found = std::upper_bound(upto.begin(), upto.end(), at);
  return sampled(order[static_cast<std::size_t>(std::min(found - upto.begin(), std::ssize(order) - 1))]);
}

}  // namespace rapt::train
