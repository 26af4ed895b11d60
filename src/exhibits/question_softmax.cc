// Softmax: why scores are scaled, and which axis it runs over.
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "exhibits/questions.h"
#include "exhibits/seen.h"
#include "exhibits/tokens.h"
#include "exhibits/walk.h"

namespace rapt::exhibits {
namespace {

// ---------------------------------------------------------------- 1/sqrt(d_k)

constexpr std::int64_t kQueries = 16, kKeys = 32, kValueSize = 4;

// The effect of one head size on softmax.
struct Spread {
  double variance = 0;              // of the scores
  double keys_in_sight = 0;         // exp of the mean entropy of a row
  double gradient = 0;              // the mean norm of the gradient that reaches a row of scores
  std::vector<double> q_gradients;  // the norm of the gradient that reaches each row of q
};

// q and k are normally distributed, as in a new layer. The gradient of the scores is computed as the gradient of an
// additive mask.
Spread spread(std::int64_t size, double scale) {
  const Tensor q = noise({1, 1, kQueries, size}, 51), k = noise({1, 1, kKeys, size}, 52);
  const Tensor v = noise({1, 1, kKeys, kValueSize}, 53), dout = noise({1, 1, kQueries, kValueSize}, 54);
  const Tensor nothing({1, 1, kQueries, kKeys}, DType::f64);
  AttentionOptions options{.scale = scale, .masks = {Mask::add(nothing)}};
  const Seen seen = see(q, k, v, options);
  Tensor dscores({1, 1, kQueries, kKeys}, DType::f64), dq(q.shape(), DType::f64);
  attention_backward({.dquery = dq.view(), .dmasks = {{.mask = 0, .to = dscores.view()}}}, {.dout = dout.view()}, q, k,
                     v, options);

  Spread result;
  result.variance = variance(seen.raw);
  double entropy = 0;
  for (std::int64_t i = 0; i < kQueries; ++i) {
    double squares = 0;
    for (std::int64_t j = 0; j < kKeys; ++j) {
      const double p = seen.weights.view().at<double>(0, 0, i, j);
      if (p > 0) entropy -= p * std::log(p) / kQueries;
      squares += std::pow(dscores.view().at<double>(0, 0, i, j), 2);
    }
    result.gradient += std::sqrt(squares) / kQueries;
    double q_squares = 0;
    for (std::int64_t d = 0; d < size; ++d) q_squares += std::pow(dq.view().at<double>(0, 0, i, d), 2);
    result.q_gradients.push_back(std::sqrt(q_squares));
  }
  result.keys_in_sight = std::exp(entropy);
  return result;
}

double default_scale(std::int64_t size) { return 1 / std::sqrt(static_cast<double>(size)); }

// The queries that get less than 1% of the gradient that they get in the other case.
std::int64_t starved(const Spread& spread, const Spread& other) {
  std::int64_t count = 0;
  for (std::size_t i = 0; i < spread.q_gradients.size(); ++i) {
    count += spread.q_gradients[i] < 0.01 * other.q_gradients[i] ? 1 : 0;
  }
  return count;
}

void build_scale(Builder& b) {
  const bool scaled = b.is("scale", "on");
  const std::int64_t size = b.number("d");

  b.prose(
      {"q·k adds up D products. If the numbers are independent and random, with mean 0 and variance 1, the sum has "
       "variance D. Dividing by √D makes it 1 again.",
       "q·k 是 D 个乘积之和。各个数相互独立、均值为 0、方差为 1 时，和的方差就是 D。除以 √D，方差又回到 1。"});
  const Tensor q = noise({1, 1, 4, size}, 51), k = noise({1, 1, 6, size}, 52), v = noise({1, 1, 6, 1}, 53);
  const double with_scale = mean_largest_weight(see(q, k, v, {.scale = default_scale(size)}).weights);
  const Seen seen = see(q, k, v, {.scale = scaled ? default_scale(size) : 1.0});
  const double largest = mean_largest_weight(seen.weights);
  const Texts queries = counted(4, "q"), keys = counted(6, "k");
  b.add(b.scores(scaled ? b.say({"q·k / √{0}", "q·k / √{0}"}, {whole(size)})
                        : b.say({"q·k with D = {0}, not scaled", "q·k，D = {0}，不缩放"}, {whole(size)}),
                 of_head(seen.raw, 0), queries, keys));
  Matrix matrix = b.weights(b.say({"softmax of these", "它们的 softmax"}), of_head(seen.weights, 0), queries, keys);
  matrix.mood = scaled ? Mood::right : Mood::wrong;
  b.add(std::move(matrix));
  if (scaled) {
    b.right({"A row attends to several keys: the largest weight is {0} on average.",
             "一行能兼顾好几个键：最大的权重平均是 {0}。"},
            {fixed(largest, 2)});
  } else if (largest > 0.8) {
    b.wrong(
        {"The scores are large, and softmax puts most of each row on one key: the largest weight is {0} on average. "
         "With the scale it is {1}.",
         "分数太大，softmax 把每行的大部分权重集中到一个键上：最大的权重平均是 {0}。缩放后是 {1}。"},
        {fixed(largest, 2), fixed(with_scale, 2)});
  } else {
    b.wrong({"D = {2} is so small that softmax still mixes several keys, but the rows are already more uneven: the "
             "largest weight is {0} on average, and {1} with the scale. The larger D is, the worse it gets.",
             "D = {2} 还很小，softmax 仍能兼顾好几个键，但各行已经更不均匀：最大的权重平均是 {0}，缩放后是 {1}。D "
             "越大越严重。"},
            {fixed(largest, 2), fixed(with_scale, 2), whole(size)});
  }

  Chart variances{b.say({"variance of the scores", "分数的方差"}), "D", {}, true, true, {}};
  Chart sights{
      b.say({"effective number of keys per query, of {0}", "一个查询有效关注的键数（共 {0} 个）"}, {whole(kKeys)}),
      "D",
      {},
      true,
      false,
      {}};
  Chart gradients{
      b.say({"norm of the gradient through softmax", "经过 softmax 回传的梯度范数"}), "D", {}, true, false, {}};
  Spread last_on, last_off;
  for (const bool on : {true, false}) {
    const std::string name = on ? b.say({"with 1/√D", "有 1/√D"}) : b.say({"without 1/√D", "没有 1/√D"});
    for (Chart* chart : {&variances, &sights, &gradients}) chart->series.push_back({name, {}});
    for (std::int64_t d = 4; d <= 1024; d *= 2) {
      const Spread at = spread(d, on ? default_scale(d) : 1.0);
      if (on) {
        for (Chart* chart : {&variances, &sights, &gradients}) chart->x.push_back(static_cast<double>(d));
      }
      variances.series.back().y.push_back(at.variance);
      sights.series.back().y.push_back(at.keys_in_sight);
      gradients.series.back().y.push_back(at.gradient);
      (on ? last_on : last_off) = at;
    }
  }
  b.add(std::move(variances));
  b.prose({"With large scores, softmax selects one key instead of mixing several. Measured by entropy, a query "
           "effectively attends to {0} keys at D = 1024 with the scale, and to {1} without it.",
           "分数一大，softmax 就不再混合，而是只选一个。按熵计算，D = 1024 时，缩放后一个查询有效关注 {0} "
           "个键，不缩放只剩 {1} 个。"},
          {fixed(last_on.keys_in_sight, 1), fixed(last_off.keys_in_sight, 1)});
  b.add(std::move(sights));
  b.prose(
      {"A saturated softmax passes almost no gradient: p·(1 − p) is nearly 0 when p is near 0 or 1. At D = 1024 "
       "the gradient of a row of scores has a norm of {0} with the scale and {1} without it, on average. Without the "
       "scale, {2} of {3} queries get less than 1% of the gradient that they get with it: they stop learning.",
       "softmax 一旦饱和，梯度就几乎传不回去：p 接近 0 或 1 时，p·(1 − p) 几乎是 0。D = 1024 "
       "时，一行分数的梯度范数平均是 {0}（缩放）和 {1}（不缩放）。不缩放时，{3} 个查询里有 {2} "
       "个得到的梯度不到缩放时的 1%，几乎学不动。"},
      {fixed(last_on.gradient, 2), fixed(last_off.gradient, 2), whole(starved(last_off, last_on)), whole(kQueries)});
  b.add(std::move(gradients));

  constexpr std::int64_t kSize = 512, kHeads = 8, kHead = kSize / kHeads;
  b.prose({"Which d? The head size: a score is the sum of that many products. With E = {0} and {1} heads, D = {2}.",
           "d 是哪个维度？是每个头的维度：一个分数就是这么多乘积之和。E = {0}、{1} 个头时，D = {2}。"},
          {whole(kSize), whole(kHeads), whole(kHead)});
  Table divisors{b.say({"the scores of one head", "一个头的分数"}),
                 {b.say({"divided by", "除以"}), b.say({"variance", "方差"}),
                  b.say({"effective keys, of {0}", "有效关注的键数（共 {0} 个）"}, {whole(kKeys)}), ""},
                 {}};
  const auto divided = [&](const std::string& name, double scale, const Both& verdict) {
    const Spread at = spread(kHead, scale);
    divisors.rows.push_back({name, fixed(at.variance, 2), fixed(at.keys_in_sight, 1), b.say(verdict)});
  };
  divided("√D = √64", default_scale(kHead), {"right", "正确"});
  divided("√E = √512", default_scale(kSize), {"too small: nearly uniform weights", "太小：权重几乎平均"});
  divided("1", 1.0, {"too large: hardly more than one key", "太大：几乎只剩一个键"});
  b.add(std::move(divisors));
}

// ---------------------------------------------------------------- rows, columns, axis

void build_axis(Builder& b) {
  const bool wrongly = b.is("axis", "queries");
  const Texts words = b.tokens(kFiveWords);
  const Walk walk = take_walk(tokenize(kFiveWords.en), 4, false);
  const std::int64_t row = std::ssize(words) - 1, best = largest_in_row(of_head(walk.scaled, 0), row);
  const auto at = [](std::int64_t n) { return static_cast<std::size_t>(n); };

  b.prose(
      {"A row is a query, with its q. A column is a key, with its k. The score is large when the two vectors point in "
       "the same direction, and when they are long.",
       "行对应查询词的 q，列对应键词的 k。两个向量方向越一致、长度越大，分数就越大。"});
  b.add(b.scores(b.say({"scores, q·k / √D", "分数，q·k / √D"}), of_head(walk.scaled, 0), words, words));

  b.prose({"One of these numbers by hand: query “{0}” (row {1}), key “{2}” (column {3}).",
           "手算其中一个数：查询“{0}”（第 {1} 行），键“{2}”（第 {3} 列）。"},
          {words[at(row)], whole(row), words[at(best)], whole(best)});
  Table by_hand{b.say({"a score is a sum of products", "分数是乘积之和"}), {"", "q", "k", "q × k"}, {}};
  double sum = 0;
  for (std::int64_t d = 0; d < walk.head_size; ++d) {
    const double q = walk.q.view().at<double>(0, row, d), k = walk.k.view().at<double>(0, best, d);
    sum += q * k;
    by_hand.rows.push_back({whole(d), fixed(q, 2), fixed(k, 2), fixed(q * k, 2)});
  }
  by_hand.rows.push_back({b.say({"sum", "和"}), "", "", fixed(sum, 2)});
  by_hand.rows.push_back(
      {"/ √" + whole(walk.head_size), "", "", fixed(of_head(walk.scaled, 0).at<double>(row, best), 2)});
  b.add(std::move(by_hand));

  // Softmax over queries is softmax of the transposed scores: keys and queries swap roles.
  const ConstTensorView q = split_heads(walk.q.view(), walk.heads), k = split_heads(walk.k.view(), walk.heads),
                        v = split_heads(walk.v.view(), walk.heads);
  const Seen turned = see(k, q, v);
  const Tensor weights =
      wrongly ? Tensor::copy_of(of_head(turned.weights, 0).transpose(0, 1)) : Tensor::copy_of(of_head(walk.weights, 0));
  b.prose(
      {"Softmax turns scores into weights. It runs over the keys, `dim=-1`, along a row: each query distributes a "
       "total weight of 1 over the keys.",
       "softmax 把分数变成权重。它沿键的方向（`dim=-1`）逐行计算：每个查询把总和为 1 的权重分给各个键。"});
  Matrix matrix = b.weights(wrongly ? b.say({"softmax over queries, dim=-2", "沿查询做 softmax，dim=-2"})
                                    : b.say({"softmax over keys, dim=-1", "沿键做 softmax，dim=-1"}),
                            weights, words, words);
  matrix.mood = wrongly ? Mood::wrong : Mood::right;
  b.add(std::move(matrix));

  const std::vector<double> rows = row_sums(weights), columns = row_sums(weights.view().transpose(0, 1));
  Table sums{b.say({"sums", "和"}), {""}, {{b.say({"of the row", "这一行"})}, {b.say({"of the column", "这一列"})}}};
  for (std::size_t n = 0; n < words.size(); ++n) {
    sums.header.push_back(words[n]);
    sums.rows[0].push_back(fixed(rows[n], 2));
    sums.rows[1].push_back(fixed(columns[n], 2));
  }
  b.add(std::move(sums));
  if (wrongly) {
    b.wrong(
        {"Now the columns sum to 1 and the rows do not: the weights of “{0}” sum to {1}, those of “{2}” to {3}. The "
         "output is no longer an average.",
         "现在列之和是 1，行之和不是：“{0}”的权重之和是 {1}，“{2}”的之和是 {3}。输出不再是加权平均。"},
        {words[1], fixed(rows[1], 2), words[0], fixed(rows[0], 2)});
  } else {
    b.right(
        {"Every row sums to 1: an output is a weighted average of values. A column may have any sum: some words get "
         "more attention than others.",
         "每一行之和都是 1：输出就是值的加权平均。列之和可以是任何数：有的词受到更多关注。"});
  }
}

}  // namespace

Question question_scale() {
  return {{"Why divide by √d_k, and which d is it?", "为什么要除以 √d_k？这里的 d 是哪个维度？"},
          {"A score is a sum of D products, so it grows with the head size D. Divided by √D, its variance "
           "stays near 1, softmax can still mix several keys, and gradients can flow.",
           "分数是 D 个乘积之和，头的维度 D 越大，分数也越大。除以 √D，分数的方差就保持在 1 左右，softmax "
           "还能混合多个键，梯度也能传回去。"},
          {{"scale",
            {"scale by 1/√D", "缩放 1/√D"},
            {{"on", {"on", "开"}}, {"off", {"off, the wrong way", "关，错误的做法"}}}},
           {"d", {"head size D", "头的维度 D"}, {{"64", {"64", "64"}}, {"4", {"4", "4"}}, {"512", {"512", "512"}}}}},
          build_scale};
}

Question question_axis() {
  return {
      {"Why is QKᵀ a score? What are rows and columns? Which axis does softmax run over?",
       "为什么 QKᵀ 是分数？行和列各是什么？softmax 沿哪个轴？"},
      {"Row i, column j measures how well key j matches query i. Softmax runs over the keys, so each row sums to 1.",
       "第 i 行第 j 列表示键 j 与查询 i 的匹配程度。softmax 沿键的方向做，所以每行之和为 1。"},
      {{"axis",
        {"softmax over", "softmax 沿"},
        {{"keys", {"keys, dim=-1", "键，dim=-1"}},
         {"queries", {"queries, dim=-2, the wrong way", "查询，dim=-2，错误的做法"}}}}},
      build_axis};
}

}  // namespace rapt::exhibits
