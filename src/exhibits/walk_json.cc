// The walk as data.
//
//   {
//     "version": "0.1.0",
//     "tokens": ["if", …], "ids": [0, …],           equal ids: the same word
//     "sizes": {"B": 1, "L": 8, "E": 24, "H": 4, "D": 6},
//     "causal": false,
//     "parameters": {"W_q": {shape, strides, values}, "W_k": …, "W_v": …, "W_o": …},   y = x · Wᵀ, as nn.Linear
//     "steps": [
//       {"step": "embedding", "name": "x", "shape": [1, 8, 24], "strides": [192, 24, 1], "values": [[[…]]]},
//       {"step": "projections", "name": "q" | "k" | "v", …},
//       {"step": "split_heads", "name": "q" | "k" | "v", …},       (B, H, L, D): the same memory, other strides
//       {"step": "scores", "name": "scores", …},                   (B, H, L, L): q·kᵀ
//       {"step": "scale", …}, {"step": "apply_mask", …}, {"step": "softmax", "name": "weights", …},
//       {"step": "dropout", "rate": 0},
//       {"step": "weighted_sum", "name": "out", …}, {"step": "combine_heads", …}, {"step": "W_o", "name": "y", …}
//     ],
//     "heads": [{"head": 0, "habit": "previous", "share": 0.8, "keys_in_sight": 2.1, "weights": [[…]]}, …],
//     "scale": {"factor": 0.408, "variance_before": …, "variance_after": …,
//               "mean_largest_weight_before": …, "mean_largest_weight_after": …},
//     "checks": {"row_sum_error": …, "output_error": …, "good": true},
//     "wrong_split": {…}                                            with --wrong-split only
//   }
//
// `values` nest as `shape` says. A hidden score is −inf, which JSON lacks; it is written as null.
#include "exhibits/walk_json.h"

#include <cmath>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

namespace rapt::exhibits {
namespace {

using Json = nlohmann::ordered_json;

Json nested(const ConstTensorView& view) {
  Json values = Json::array();
  for (std::int64_t i = 0; i < view.size(0); ++i) {
    if (view.rank() == 1) {
      values.push_back(view.at<double>(i));
    } else {
      values.push_back(nested(view.select(0, i)));
    }
  }
  return values;
}

Json tensor(const ConstTensorView& view) {
  return {{"shape", std::vector<std::int64_t>(view.shape().begin(), view.shape().end())},
          {"strides", std::vector<std::int64_t>(view.strides().begin(), view.strides().end())},
          {"values", nested(view)}};
}

Json step(std::string_view name, std::string_view tensor_name, const ConstTensorView& view) {
  Json result{{"step", name}, {"name", tensor_name}};
  result.update(tensor(view));
  return result;
}

std::string_view habit_name(Habit habit) {
  switch (habit) {
    case Habit::previous: return "previous";
    case Habit::same: return "same";
    case Habit::itself: return "itself";
    case Habit::first: return "first";
    case Habit::next: return "next";
    case Habit::blinded: return "blinded";
    case Habit::spread: break;
  }
  return "spread";
}

}  // namespace

Json walk_as_json(const Walk& walk) {
  Json steps = Json::array();
  steps.push_back(step("embedding", "x", walk.x));
  steps.push_back(step("projections", "q", walk.q));
  steps.push_back(step("projections", "k", walk.k));
  steps.push_back(step("projections", "v", walk.v));
  steps.push_back(step("split_heads", "q", split_heads(walk.q.view(), walk.heads)));
  steps.push_back(step("split_heads", "k", split_heads(walk.k.view(), walk.heads)));
  steps.push_back(step("split_heads", "v", split_heads(walk.v.view(), walk.heads)));
  steps.push_back(step("scores", "scores", walk.scores));
  steps.push_back(step("scale", "scores", walk.scaled));
  steps.push_back(step("apply_mask", "scores", walk.masked));
  steps.push_back(step("softmax", "weights", walk.weights));
  steps.push_back({{"step", "dropout"}, {"rate", 0}});
  steps.push_back(step("weighted_sum", "out", walk.heads_out));
  steps.push_back(step("combine_heads", "out", walk.combined));
  steps.push_back(step("W_o", "y", walk.y));

  Json heads = Json::array();
  for (std::int64_t h = 0; h < walk.heads; ++h) {
    const HeadSummary& summary = walk.summary[static_cast<std::size_t>(h)];
    heads.push_back({{"head", h},
                     {"habit", habit_name(summary.habit)},
                     {"share", summary.share},
                     {"keys_in_sight", summary.keys_in_sight},
                     {"weights", nested(walk.weights.view().select(0, 0).select(0, h))}});
  }

  return {
      {"version", RAPT_VERSION},
      {"tokens", walk.sentence.tokens},
      {"ids", walk.sentence.ids},
      {"sizes", {{"B", 1}, {"L", walk.length}, {"E", kEmbedding}, {"H", walk.heads}, {"D", walk.head_size}}},
      {"causal", walk.causal},
      {"parameters",
       {{"W_q", tensor(walk.weight.w_q)},
        {"W_k", tensor(walk.weight.w_k)},
        {"W_v", tensor(walk.weight.w_v)},
        {"W_o", tensor(walk.weight.w_o)}}},
      {"steps", steps},
      {"heads", heads},
      {"scale",
       {{"factor", 1 / std::sqrt(static_cast<double>(walk.head_size))},
        {"variance_before", variance(walk.scores)},
        {"variance_after", variance(walk.scaled)},
        {"mean_largest_weight_before", mean_largest_weight(walk.unscaled_weights)},
        {"mean_largest_weight_after", mean_largest_weight(walk.weights)}}},
      {"checks", {{"row_sum_error", walk.row_sum_error}, {"output_error", walk.output_error}, {"good", walk.good()}}},
  };
}

Json wrong_split_as_json(const Walk& walk, const WrongSplit& wrong) {
  Json holds = Json::array();  // [head][row] = {token, first number}
  for (std::int64_t h = 0; h < walk.heads; ++h) {
    Json rows = Json::array();
    for (std::int64_t i = 0; i < walk.length; ++i) {
      const Piece piece = wrong_piece(walk, h, i);
      rows.push_back({{"token", piece.token}, {"first", piece.first}});
    }
    holds.push_back(rows);
  }
  return {{"holds", holds},
          {"misplaced_rows", wrong.misplaced_rows},
          {"weights", tensor(wrong.weights)},
          {"out", tensor(wrong.heads_out)},
          {"y", tensor(wrong.y)},
          {"weights_difference", wrong.weights_difference},
          {"output_difference", wrong.output_difference},
          {"leaks_right", wrong.leaks_right},
          {"leaks_wrong", wrong.leaks_wrong}};
}

}  // namespace rapt::exhibits
