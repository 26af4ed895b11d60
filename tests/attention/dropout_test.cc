// Dropout: the rate and the independence of neighbours are tested over ten million draws. Forward, backward and partial
// calls must drop the same weights.
#include <cmath>
#include <cstdint>
#include <string>
#include <tuple>
#include <vector>

#include <gtest/gtest.h>

#include "rapt/attention.h"
#include "support/every_instruction_set.h"
#include "support/random_tensor.h"

namespace rapt::test {
namespace {

// Which weights a call keeps, read from its dropped weights: (B, H, Lq, Lk) in row-major order.
struct Draws {
  // Ten million draws; fewer under a sanitizer, which is slow and has another purpose.
  std::int64_t batch = 4, heads = 5, queries = kAddressSanitizer || kThreadSanitizer ? 50 : 500, keys = 1000;
  std::vector<std::uint8_t> kept{};

  static Draws of(double rate, std::uint64_t seed) {
    Draws draws;
    const auto [b, h, i, j] = std::tuple(draws.batch, draws.heads, draws.queries, draws.keys);
    const Tensor query({b, h, i, 1}), key({b, h, j, 1}), value({b, h, j, 1});  // zeros: every key has the same weight
    Tensor out({b, h, i, 1}), weights({b, h, i, j});
    attention({.out = out, .captures = {{.stage = Stage::dropped_weights, .to = weights}}}, query, key, value,
              {.dropout = {.rate = rate, .seed = seed}});
    draws.kept.reserve(static_cast<std::size_t>(weights.count()));
    for (const float weight : weights.values<float>()) draws.kept.push_back(weight != 0.0F ? 1 : 0);
    return draws;
  }
};

// Correlation between position n of `a` and position n + distance of `b`, in standard deviations of the correlation of
// random numbers.
// `within`: the size of the row, plane or batch that both positions must be in.
double deviations(const std::vector<std::uint8_t>& a, const std::vector<std::uint8_t>& b, std::int64_t distance,
                  std::int64_t within, double rate) {
  std::int64_t both = 0, first = 0, second = 0, pairs = 0;
  const auto count = static_cast<std::int64_t>(a.size());
  for (std::int64_t begin = 0; begin < count; begin += within) {
    for (std::int64_t n = begin; n < begin + within - distance; ++n) {
      const int x = a[static_cast<std::size_t>(n)], y = b[static_cast<std::size_t>(n + distance)];
      both += x & y, first += x, second += y;
    }
    pairs += within - distance;
  }
  const double keep = 1.0 - rate, all = static_cast<double>(pairs);
  const double covariance =
      static_cast<double>(both) / all - keep * static_cast<double>(first + second) / all + keep * keep;
  return covariance / (keep * rate) * std::sqrt(all);
}

class DropoutRate : public testing::TestWithParam<double> {};
INSTANTIATE_TEST_SUITE_P(Of, DropoutRate, testing::Values(0.02, 0.1, 0.5, 0.9),
                         [](const auto& test) { return "PerCent" + std::to_string(std::lround(100 * test.param)); });

TEST_P(DropoutRate, IsWithinFourSigmaAndNeighboursAreIndependent) {
  const double rate = GetParam();
  const Draws draws = Draws::of(rate, 7);
  const std::vector<std::uint8_t>& kept = draws.kept;
  ASSERT_EQ(static_cast<std::int64_t>(kept.size()), draws.batch * draws.heads * draws.queries * draws.keys);

  double all = 0.0;
  for (const std::uint8_t one : kept) all += one;
  const auto count = static_cast<double>(kept.size());
  EXPECT_LE(std::abs(all - (1.0 - rate) * count), 4.0 * std::sqrt(count * rate * (1.0 - rate)));

  const std::int64_t plane = draws.queries * draws.keys, row = draws.heads * plane, whole = draws.batch * row;
  for (const std::int64_t keys : {1, 2, 3, 4}) {  // within one group of four random numbers, and in the next
    EXPECT_LE(std::abs(deviations(kept, kept, keys, draws.keys, rate)), 4.0) << keys << " keys apart";
  }
  EXPECT_LE(std::abs(deviations(kept, kept, draws.keys, plane, rate)), 4.0) << "neighbouring queries";
  EXPECT_LE(std::abs(deviations(kept, kept, plane, row, rate)), 4.0) << "neighbouring heads";
  EXPECT_LE(std::abs(deviations(kept, kept, row, whole, rate)), 4.0) << "neighbouring batch rows";
  const Draws next = Draws::of(rate, 8);
  EXPECT_LE(std::abs(deviations(kept, next.kept, 0, whole, rate)), 4.0) << "successive seeds";
}

TEST(DropoutStatistics, SeeWhatIsNotIndependent) {
  std::vector<std::uint8_t> kept = Draws::of(0.5, 7).kept;
  EXPECT_GT(deviations(kept, kept, 0, 1000, 0.5), 900.0);
  // One value in a hundred is copied from its neighbour.
  for (std::size_t n = 0; n + 1 < kept.size(); n += 100) kept[n + 1] = kept[n];
  EXPECT_GT(deviations(kept, kept, 1, 1000, 0.5), 4.0);
}

// ---------------------------------------------------------------- forward and backward, the whole and its parts

constexpr std::int64_t kBatch = 4, kHeads = 6, kKvHeads = 2, kGroup = kHeads / kKvHeads, kQueries = 40, kKeys = 300;
constexpr double kRate = 0.3;

// A tensor with a 1 in column `column(h, i)` of row i of each head h, and zeros elsewhere.
template <class Column>
Tensor one_hot(std::int64_t heads, std::int64_t rows, std::int64_t columns, const Column& column) {
  Tensor tensor({kBatch, heads, rows, columns});
  for (std::int64_t b = 0; b < kBatch; ++b) {
    for (std::int64_t h = 0; h < heads; ++h) {
      for (std::int64_t i = 0; i < rows; ++i) tensor.view().at<float>(b, h, i, column(h, i)) = 1.0F;
    }
  }
  return tensor;
}

struct Part {
  std::int64_t batch = 0, batches = kBatch, kv_head = 0, kv_heads = kKvHeads, query = 0, queries = kQueries;
};

// Which weights were kept, (B, Hq, Lq, Lk), derived from each result of the call.
struct Kept {
  Tensor by_weights, by_out, by_dvalue, by_dquery;
};

Kept kept_in(const Part& part) {
  // k and v are one-hot, so that row i of out, and of dq, has an element for each key. dout is one-hot in column (h in
  // its group, i), so that column (h, i) of dv holds the dropped weights of row i of head h.
  const auto own = [](std::int64_t, std::int64_t j) { return j; };
  const Tensor query = random({kBatch, kHeads, kQueries, kKeys}), key = one_hot(kKvHeads, kKeys, kKeys, own);
  const Tensor dout =
      one_hot(kHeads, kQueries, kKeys, [](std::int64_t h, std::int64_t i) { return h % kGroup * kQueries + i; });
  Tensor ones({kBatch, kKvHeads, kKeys, kKeys});
  for (float& one : ones.values<float>()) one = 1.0F;

  const auto of_queries = [&](const Tensor& all) {
    return all.view()
        .slice(0, part.batch, part.batch + part.batches)
        .slice(1, part.kv_head * kGroup, (part.kv_head + part.kv_heads) * kGroup)
        .slice(2, part.query, part.query + part.queries);
  };
  const auto of_keys = [&](const Tensor& all) {
    return all.view()
        .slice(0, part.batch, part.batch + part.batches)
        .slice(1, part.kv_head, part.kv_head + part.kv_heads);
  };
  const ConstTensorView q = of_queries(query), k = of_keys(key), above = of_queries(dout);
  const AttentionOptions options{.dropout = {.rate = kRate,
                                             .seed = 3,
                                             .batch_start = part.batch,
                                             .head_start = part.kv_head * kGroup,
                                             .query_start = part.query}};
  Kept kept{Tensor(q.shape()), Tensor(q.shape()), Tensor(q.shape()), Tensor(q.shape())};
  attention({.out = kept.by_out, .captures = {{.stage = Stage::dropped_weights, .to = kept.by_weights}}}, q, k, k,
            options);
  Tensor dvalue(k.shape());
  attention_backward({.dvalue = dvalue}, {.dout = above}, q, k, k, options);
  for (std::int64_t b = 0; b < q.size(0); ++b) {
    for (std::int64_t h = 0; h < q.size(1); ++h) {
      for (std::int64_t i = 0; i < q.size(2); ++i) {
        const std::int64_t column = h % kGroup * kQueries + part.query + i;
        copy(dvalue.view().select(0, b).select(0, h / kGroup).select(1, column),
             kept.by_dvalue.view().select(0, b).select(0, h).select(0, i));
      }
    }
  }
  // With values of 1, the gradient g of a weight is 1 / (1 − rate) if the weight is kept and 0 if it is dropped, and
  // delta is the weighted mean of g. So g − delta is positive for kept weights and negative for dropped ones.
  attention_backward({.dquery = kept.by_dquery}, {.dout = above}, q, k, of_keys(ones), options);
  for (Tensor* each : {&kept.by_weights, &kept.by_out, &kept.by_dvalue, &kept.by_dquery}) {
    for (float& x : each->values<float>()) x = x > 0.0F ? 1.0F : 0.0F;
  }
  return kept;
}

class DropoutMask : public EveryInstructionSet {};
RAPT_ON_EVERY_INSTRUCTION_SET(DropoutMask);

TEST_P(DropoutMask, IsTheSameInForwardAndBackward) {
  const Kept kept = kept_in({});
  double all = 0.0;
  for (const float one : kept.by_weights.values<float>()) all += static_cast<double>(one);
  EXPECT_NEAR(all / static_cast<double>(kept.by_weights.count()), 1.0 - kRate, 0.01);
  EXPECT_TRUE(same_bits(kept.by_out, kept.by_weights));
  EXPECT_TRUE(same_bits(kept.by_dvalue, kept.by_weights));
  EXPECT_TRUE(same_bits(kept.by_dquery, kept.by_weights));
}

TEST_P(DropoutMask, OfAPartIsThatOfTheWhole) {
  const Kept whole = kept_in({});
  const Part parts[] = {
      {.batch = 2, .batches = 1},                                                         // a micro-batch
      {.batch = 1, .batches = 3},                                                         //
      {.kv_head = 1, .kv_heads = 1},                                                      // a slice of the heads
      {.query = 17, .queries = 9},                                                        // a chunk of the queries
      {.batch = 3, .batches = 1, .kv_head = 1, .kv_heads = 1, .query = 39, .queries = 1}  // all three
  };
  for (const Part& part : parts) {
    const Kept alone = kept_in(part);
    const auto in_whole = [&](const Tensor& all) {
      return all.view()
          .slice(0, part.batch, part.batch + part.batches)
          .slice(1, part.kv_head * kGroup, (part.kv_head + part.kv_heads) * kGroup)
          .slice(2, part.query, part.query + part.queries);
    };
    EXPECT_TRUE(same_bits(alone.by_out, in_whole(whole.by_out)));
    EXPECT_TRUE(same_bits(alone.by_dvalue, in_whole(whole.by_dvalue)));
    EXPECT_TRUE(same_bits(alone.by_dquery, in_whole(whole.by_dquery)));
  }
}

}  // namespace
}  // namespace rapt::test
