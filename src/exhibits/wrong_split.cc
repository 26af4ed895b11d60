#include "exhibits/wrong_split.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "rapt/attention.h"

namespace rapt::exhibits {
namespace {

struct Result {
  Tensor weights;
  Tensor heads_out;
  Tensor y;
};

// From embeddings to y under either split; everything else is the same.
Result run(const ConstTensorView& x, const Walk& walk, bool wrong, bool causal) {
  const Tensor q = linear(x, walk.weight.w_q);
  const Tensor k = linear(x, walk.weight.w_k);
  const Tensor v = linear(x, walk.weight.w_v);
  const auto split = [&](const Tensor& tensor) {
    return wrong ? tensor.view().reshape({1, walk.heads, walk.length, walk.head_size})
                 : split_heads(tensor.view(), walk.heads);
  };
  Result result{.weights = Tensor({1, walk.heads, walk.length, walk.length}, DType::f64),
                .heads_out = Tensor({1, walk.heads, walk.length, walk.head_size}, DType::f64),
                .y = {}};
  AttentionOutputs outputs{.out = result.heads_out.view()};
  outputs.captures = {{.stage = Stage::weights, .to = result.weights.view()}};
  attention(outputs, split(q), split(k), split(v), {.causal = causal});
  result.y = linear(combine_heads_copy(result.heads_out), walk.weight.w_o);
  return result;
}

// The earlier tokens whose outputs change with the last word, although a causal mask is on.
std::vector<std::int64_t> leaks(const Walk& walk, bool wrong) {
  Tensor changed = walk.x.clone();
  const TensorView last = changed.view().select(1, walk.length - 1);
  for (std::int64_t d = 0; d < kWho; ++d) last.at<double>(0, d) *= -1;  // another word in the same place
  const Tensor before = run(walk.x, walk, wrong, true).y;
  const Tensor after = run(changed, walk, wrong, true).y;

  std::vector<std::int64_t> moved;
  for (std::int64_t i = 0; i + 1 < walk.length; ++i) {
    double largest = 0;
    for (std::int64_t d = 0; d < kEmbedding; ++d) {
      largest = std::max(largest, std::abs(before.view().at<double>(0, i, d) - after.view().at<double>(0, i, d)));
    }
    if (largest > 1e-9) moved.push_back(i);
  }
  return moved;
}

}  // namespace

Piece wrong_piece(const Walk& walk, std::int64_t head, std::int64_t row) {
  const std::int64_t place = (head * walk.length + row) * walk.head_size;  // in memory
  return {place / kEmbedding, place % kEmbedding};
}

WrongSplit split_wrongly(const Walk& walk) {
  Result result = run(walk.x, walk, true, walk.causal);
  WrongSplit wrong;
  for (std::int64_t h = 0; h < walk.heads; ++h) {
    for (std::int64_t i = 0; i < walk.length; ++i) {
      const Piece piece = wrong_piece(walk, h, i);
      if (piece.token != i || piece.first != h * walk.head_size) ++wrong.misplaced_rows;
    }
  }
  const auto right_weights = walk.weights.values<double>();
  const auto wrong_weights = std::as_const(result.weights).values<double>();
  for (std::size_t i = 0; i < right_weights.size(); ++i) {
    wrong.weights_difference = std::max(wrong.weights_difference, std::abs(wrong_weights[i] - right_weights[i]));
  }
  const auto right_y = walk.y.values<double>();
  const auto wrong_y = std::as_const(result.y).values<double>();
  double difference = 0;
  double size = 0;
  for (std::size_t i = 0; i < right_y.size(); ++i) {
    difference += (wrong_y[i] - right_y[i]) * (wrong_y[i] - right_y[i]);
    size += right_y[i] * right_y[i];
  }
  wrong.output_difference = std::sqrt(difference / size);
  wrong.weights = std::move(result.weights);
  wrong.heads_out = std::move(result.heads_out);
  wrong.y = std::move(result.y);
  wrong.leaks_right = leaks(walk, false);
  wrong.leaks_wrong = leaks(walk, true);
  return wrong;
}

}  // namespace rapt::exhibits
