#include "exhibits/walk.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <span>
#include <utility>

#include "models/shares.h"
#include "rapt/attention.h"

namespace rapt::exhibits {
namespace {

void attend(Walk& walk) {
  const Dims square{1, walk.heads, walk.length, walk.length};
  for (Tensor* tensor : {&walk.scores, &walk.scaled, &walk.masked, &walk.weights, &walk.unscaled_weights}) {
    *tensor = Tensor(square, DType::f64);
  }
  walk.heads_out = Tensor({1, walk.heads, walk.length, walk.head_size}, DType::f64);

  const ConstTensorView q = split_heads(std::as_const(walk.q).view(), walk.heads);
  const ConstTensorView k = split_heads(std::as_const(walk.k).view(), walk.heads);
  const ConstTensorView v = split_heads(std::as_const(walk.v).view(), walk.heads);

  const AttentionOptions options{.causal = walk.causal};
  AttentionOutputs outputs{.out = walk.heads_out.view()};
  outputs.captures = {{.stage = Stage::raw, .to = walk.scaled.view()},
                      {.stage = Stage::masked, .to = walk.masked.view()},
                      {.stage = Stage::weights, .to = walk.weights.view()}};
  attention(outputs, q, k, v, options);

  // The same call with a scale of 1 shows q·kᵀ itself.
  AttentionOptions unscaled = options;
  unscaled.scale = 1.0;
  Tensor ignored(walk.heads_out.shape(), DType::f64);
  AttentionOutputs before{.out = ignored.view()};
  before.captures = {{.stage = Stage::raw, .to = walk.scores.view()},
                     {.stage = Stage::weights, .to = walk.unscaled_weights.view()}};
  attention(before, q, k, v, unscaled);
}

void check(Walk& walk) {
  const ConstTensorView weights = std::as_const(walk.weights).view();
  const ConstTensorView v = std::as_const(walk.v).view();
  const ConstTensorView out = std::as_const(walk.heads_out).view();
  for (std::int64_t h = 0; h < walk.heads; ++h) {
    for (std::int64_t i = 0; i < walk.length; ++i) {
      double sum = 0;
      for (std::int64_t j = 0; j < walk.length; ++j) sum += weights.at<double>(0, h, i, j);
      walk.row_sum_error = std::max(walk.row_sum_error, std::abs(sum - 1));
      for (std::int64_t d = 0; d < walk.head_size; ++d) {
        double expected = 0;
        for (std::int64_t j = 0; j < walk.length; ++j) {
          expected += weights.at<double>(0, h, i, j) * v.at<double>(0, j, h * walk.head_size + d);
        }
        walk.output_error = std::max(walk.output_error, std::abs(out.at<double>(0, h, i, d) - expected));
      }
    }
  }
}

HeadSummary summarize(const Walk& walk, const ConstTensorView& weights) {
  const models::Shares shares = models::shares_of<double>(weights, std::span<const std::int64_t>(walk.sentence.ids),
                                                          [](std::int64_t /*row*/) { return true; });
  const std::array<std::pair<double, Habit>, 4> candidates{{
      {shares.previous, Habit::previous},
      {shares.same, shares.repeats ? Habit::same : Habit::itself},
      {shares.first, Habit::first},
      {shares.next, Habit::next},
  }};
  const auto best = std::max_element(candidates.begin(), candidates.end(),
                                     [](const auto& a, const auto& b) { return a.first < b.first; });
  HeadSummary summary{best->second, best->first, std::exp(shares.entropy)};
  // A repeated word matters only if the head really attends to the other occurrence.
  if (summary.habit == Habit::same && shares.itself > 0.95 * summary.share) summary.habit = Habit::itself;
  if (summary.share < 0.5) summary.habit = Habit::spread;
  return summary;
}

void summarize(Walk& walk) {
  // The weights without the mask show which heads the mask leaves without a target.
  Tensor wanted(walk.weights.shape(), DType::f64);
  Tensor ignored(walk.heads_out.shape(), DType::f64);
  if (walk.causal) {
    AttentionOutputs outputs{.out = ignored.view()};
    outputs.captures = {{.stage = Stage::weights, .to = wanted.view()}};
    attention(outputs, split_heads(walk.q.view(), walk.heads), split_heads(walk.k.view(), walk.heads),
              split_heads(walk.v.view(), walk.heads));
  }
  for (std::int64_t h = 0; h < walk.heads; ++h) {
    HeadSummary summary = summarize(walk, walk.weights.view().select(0, 0).select(0, h));
    if (walk.causal && summarize(walk, wanted.view().select(0, 0).select(0, h)).habit == Habit::next) {
      summary.habit = Habit::blinded;
      summary.share = 0;
    }
    walk.summary.push_back(summary);
  }
}

}  // namespace

Walk take_walk(Sentence sentence, std::int64_t heads, bool causal) {
  Walk walk;
  walk.sentence = std::move(sentence);
  walk.length = walk.sentence.length();
  walk.heads = heads;
  walk.head_size = kEmbedding / heads;
  walk.causal = causal;
  walk.weight = make_projections();

  walk.x = embed(walk.sentence);
  walk.q = linear(walk.x, walk.weight.w_q);
  walk.k = linear(walk.x, walk.weight.w_k);
  walk.v = linear(walk.x, walk.weight.w_v);
  attend(walk);
  walk.combined = combine_heads_copy(walk.heads_out);
  walk.y = linear(walk.combined, walk.weight.w_o);

  check(walk);
  summarize(walk);
  return walk;
}

double variance(const ConstTensorView& scores) {
  const std::span<const double> values(scores.data_as<double>(), static_cast<std::size_t>(scores.count()));
  double mean = 0;
  for (const double value : values) mean += value / static_cast<double>(values.size());
  double sum = 0;
  for (const double value : values) sum += (value - mean) * (value - mean);
  return sum / static_cast<double>(values.size());
}

double mean_largest_weight(const ConstTensorView& weights) {
  double sum = 0;
  const std::int64_t rows = weights.size(1) * weights.size(2);
  for (std::int64_t h = 0; h < weights.size(1); ++h) {
    for (std::int64_t i = 0; i < weights.size(2); ++i) {
      double largest = 0;
      for (std::int64_t j = 0; j < weights.size(3); ++j) largest = std::max(largest, weights.at<double>(0, h, i, j));
      sum += largest;
    }
  }
  return sum / static_cast<double>(rows);
}

}  // namespace rapt::exhibits
