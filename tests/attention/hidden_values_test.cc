// Masked keys have no influence: NaN and infinities in k and v reach no row that does not see them, with every way to
// mask a key, on every engine and instruction set, forward and backward.
#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "cases/hidden.h"
#include "cases/list.h"
#include "support/every_instruction_set.h"
#include "support/random_tensor.h"
#include "support/sanitizers.h"

namespace rapt::test {
namespace {

using cases::CaseSpec;

// The multiply-adds of a case. Slow cases test little more than fast ones, so they are skipped.
std::int64_t work(const CaseSpec& spec) {
  return spec.batch * spec.query_heads * spec.queries * spec.keys * (spec.head_size + spec.value_size);
}

// The ways to hide keys that a case uses.
std::vector<std::string> ways_to_hide(const CaseSpec& spec) {
  std::vector<std::string> ways;
  const auto add = [&](bool used, const char* name) {
    if (used) ways.emplace_back(name);
  };
  const auto has = [&](const std::function<bool(const cases::MaskSpec&)>& is) {
    return std::any_of(spec.masks.begin(), spec.masks.end(), is);
  };
  add(spec.causal, "causal");
  add(spec.window.left || spec.window.right, "window");
  add(spec.window.left.value_or(spec.keys) < spec.keys && spec.window.first > 0, "window but for the first keys");
  add(!spec.key_lengths.empty() && spec.page_size == 0, "key lengths");
  add(!spec.packed.key_starts.empty(), "packed sequences");
  add(spec.page_size > 0, "pages");
  add(spec.kv_type == DType::i8, "i8");
  add(has([](const cases::MaskSpec& m) { return m.kind == Mask::Kind::keep; }), "Mask::keep");
  add(has([](const cases::MaskSpec& m) { return m.kind == Mask::Kind::drop; }), "Mask::drop");
  add(has([](const cases::MaskSpec& m) { return m.kind == Mask::Kind::add && std::isinf(m.special); }), "Mask::add");
  add(has([](const cases::MaskSpec& m) { return m.kind == Mask::Kind::fill && std::isinf(m.value); }), "Mask::fill");
  return ways;
}

TEST(HiddenValues, LeaveNoTraceIn2000RandomCases) {
  const std::int64_t wanted = kSlow ? 100 : 2000;
  const KeepInstructionSet keep;
  std::map<std::string, std::int64_t> ways;
  std::int64_t found = 0, backward = 0, failures = 0;
  for (std::uint64_t seed = 1; found < wanted && failures < 5; ++seed) {
    CaseSpec spec = cases::random_case(seed);
    if (work(spec) > 250'000 || work(spec) == 0) continue;
    spec.captures.emplace_back(Stage::masked, Selection());
    spec.captures.emplace_back(Stage::dropped_weights, Selection{.mean_over_heads = seed % 2 == 0});
    if (seed % 3 == 0) spec.captures = {{Stage::dropped_weights, {.mean_over_heads = true}}};  // a separate path
    if (seed % 5 == 0) spec.captures.clear();
    cases::Case test(spec);
    const cases::SeenKeys seen(test);
    const std::vector<cases::Spoilt> spoilt = draw_spoilt(test, seen);
    if (spoilt.empty()) continue;
    ++found;
    backward += cases::has_backward(spec) ? 1 : 0;
    for (const std::string& way : ways_to_hide(spec)) ++ways[way];
    test.options.threads = seed % 2 == 0 ? 1 : 3;
    const auto check = [&](const std::string& name) {
      const std::string what = leaks(test, seen, spoilt);
      failures += what.empty() ? 0 : 1;
      EXPECT_EQ(what, "") << "on " << name << ": " << describe(spec);
    };
    test.options.engine = Engine::reference;
    check("the reference");
    test.options.engine = Engine::cpu;
    for (const std::string& set : instruction_sets_here()) {
      use_instruction_set(set);
      check(set);
    }
  }
  EXPECT_GT(backward, wanted / 2);
  EXPECT_EQ(ways.size(), 11U);
  for (const auto& [way, count] : ways) {
    EXPECT_GE(count, wanted / 50) << way;
    RecordProperty(way, static_cast<int>(count));
  }
}

class HiddenValuesOnEverySet : public EveryInstructionSet {};
RAPT_ON_EVERY_INSTRUCTION_SET(HiddenValuesOnEverySet);

// Lengths of several tiles and chunks, for each code path of the engine: many rows, few rows, rows whose chunks are
// shared among threads, mean weights.
TEST_P(HiddenValuesOnEverySet, LeaveNoTraceInAnyPath) {
  struct Path {
    std::int64_t queries, keys;
    int threads;
    std::vector<std::pair<Stage, Selection>> captures;
  };
  const std::vector<Path> paths = {
      {150, 150, 1, {}},
      {150, 700, 1, {{Stage::weights, {}}}},
      {6, 1500, 1, {}},
      {6, 3000, 3, {}},
      {20, 1500, 3, {}},
      {60, 900, 7, {}},
      {100, 300, 1, {{Stage::dropped_weights, {.mean_over_heads = true}}}},
  };
  for (const Path& path : paths) {
    for (const DType storage : {DType::f32, DType::bf16}) {
      for (std::uint64_t seed = 1; seed <= (kSlow ? 1U : 4U); ++seed) {
        CaseSpec spec{.name = "Path", .batch = 1, .query_heads = 2, .kv_heads = 1};
        spec.queries = path.queries, spec.keys = path.keys, spec.captures = path.captures;
        spec.head_size = 16, spec.value_size = 20, spec.kv_type = storage, spec.seed = seed;
        spec.causal = true, spec.alignment = Alignment::bottom_right();
        if (seed % 2 == 0) spec.masks = {{.kind = Mask::Kind::drop, .one_query = true, .chance = 0.5}};
        cases::Case test(spec);
        test.options.threads = path.threads;
        const cases::SeenKeys seen(test);
        const std::vector<cases::Spoilt> spoilt = {
            {true, 0, 0, path.keys - 1, 3, std::nan("")},
            {true, 0, 0, path.keys - 4, 19, -std::numeric_limits<double>::infinity()},
            {false, 0, 0, path.keys - 2, 5, std::nan("")},
            {false, 0, 0, path.keys - 5, 0, std::numeric_limits<double>::infinity()},
        };
        EXPECT_EQ(leaks(test, seen, spoilt), "") << path.threads << " threads: " << describe(spec);
      }
    }
  }
}

// Masked keys between the first keys and a window, in a chunk that has keys of both, and in chunks that are skipped.
TEST_P(HiddenValuesOnEverySet, LeaveNoTraceBetweenTheFirstKeysAndTheWindow) {
  struct Path {
    std::int64_t queries, keys;
    int threads;
    std::vector<std::pair<Stage, Selection>> captures;
  };
  const std::vector<Path> paths = {
      {200, 200, 1, {}}, {70, 700, 1, {{Stage::weights, {}}}},
      {6, 1500, 1, {}},  {6, 3000, 3, {}},
      {60, 900, 7, {}},  {100, 900, 1, {{Stage::dropped_weights, {.mean_over_heads = true}}}},
  };
  for (const Path& path : paths) {
    for (const std::int64_t left : {std::int64_t{3}, path.keys - path.queries - 30}) {
      CaseSpec spec{.name = "Path", .batch = 1, .query_heads = 2, .kv_heads = 1};
      spec.queries = path.queries, spec.keys = path.keys, spec.captures = path.captures;
      spec.head_size = 16, spec.value_size = 20, spec.causal = true, spec.alignment = Alignment::bottom_right();
      spec.window = {.left = std::max<std::int64_t>(left, 0), .first = 5};
      cases::Case test(spec);
      test.options.threads = path.threads;
      const cases::SeenKeys seen(test);
      const std::vector<cases::Spoilt> spoilt = {
          {true, 0, 0, 5, 3, std::nan("")},
          {true, 0, 0, 11, 19, std::numeric_limits<double>::infinity()},
          {false, 0, 0, 6, 5, std::nan("")},
          {false, 0, 0, 9, 0, -std::numeric_limits<double>::infinity()},
      };
      EXPECT_EQ(leaks(test, seen, spoilt), "") << path.threads << " threads: " << describe(spec);
    }
  }
}

// A row has no influence on the gradients of keys that it does not see, for any upstream gradient.
TEST_P(HiddenValuesOnEverySet, GetNoGradientFromRowsThatDoNotSeeThem) {
  constexpr std::int64_t kLength = 300, kRow = 100, kColumn = 7;
  for (const Engine engine : {Engine::cpu, Engine::reference}) {
    for (const double bad : {std::nan(""), -std::numeric_limits<double>::infinity()}) {
      const Tensor query = random({1, 2, kLength, 8}, DType::f32, 1), key = random({1, 2, kLength, 8}, DType::f32, 2),
                   value = random({1, 2, kLength, 20}, DType::f32, 3);
      Tensor dout = random({1, 2, kLength, 20}, DType::f32, 4);
      const AttentionOptions options{.causal = true, .engine = engine};
      Tensor dq[2], dk[2], dv[2];
      for (std::size_t n = 0; n < 2; ++n) {
        if (n == 1) dout.view().at<float>(0, 1, kRow, kColumn) = static_cast<float>(bad);
        dq[n] = Tensor(query.shape()), dk[n] = Tensor(key.shape()), dv[n] = Tensor(value.shape());
        attention_backward({.dquery = dq[n], .dkey = dk[n], .dvalue = dv[n]}, {.dout = dout}, query, key, value,
                           options);
      }
      const auto same = [&](const Tensor* tensors, std::int64_t head, std::int64_t first, std::int64_t last) {
        const auto part = [&](const Tensor& tensor) { return tensor.view().select(1, head).slice(1, first, last); };
        return same_bits(part(tensors[0]), part(tensors[1]));
      };
      for (const Tensor* tensors : {dq, dk, dv}) EXPECT_TRUE(same(tensors, 0, 0, kLength));
      for (const Tensor* tensors : {dk, dv}) EXPECT_TRUE(same(tensors, 1, kRow + 1, kLength));
      EXPECT_TRUE(same(dq, 1, 0, kRow) && same(dq, 1, kRow + 1, kLength));
      for (std::int64_t j = 0; j <= kRow; ++j) {
        ASSERT_FALSE(std::isfinite(dv[1].view().at<float>(0, 1, j, kColumn))) << j;
        ASSERT_TRUE(std::isfinite(dv[1].view().at<float>(0, 1, j, kColumn + 1))) << j;
        ASSERT_TRUE(std::isnan(dk[1].view().at<float>(0, 1, j, 0))) << j;
      }
    }
  }
}

bool same_nans(const Tensor& a, const Tensor& b) {
  const std::span<const float> x = a.values<float>(), y = b.values<float>();
  return std::equal(x.begin(), x.end(), y.begin(), y.end(),
                    [](float one, float other) { return std::isnan(one) == std::isnan(other); });
}

// The gradients of a call on the CPU engine and on the reference.
struct GradientsOfBoth {
  GradientsOfBoth(const Tensor& q, const Tensor& k, const Tensor& v, const AttentionUpstream& upstream,
                  AttentionOptions options) {
    for (std::size_t n = 0; n < 2; ++n) {
      options.engine = n == 0 ? Engine::cpu : Engine::reference;
      dq[n] = Tensor(q.shape()), dk[n] = Tensor(k.shape()), dv[n] = Tensor(v.shape());
      dsinks[n] = Tensor({q.size(1)});
      AttentionGradients to{.dquery = dq[n], .dkey = dk[n], .dvalue = dv[n]};
      if (options.sinks.defined()) to.dsinks = dsinks[n];
      attention_backward(to, upstream, q, k, v, options);
    }
  }

  Tensor dq[2], dk[2], dv[2], dsinks[2];
};

// Row 7 sees keys 0 to 20, and key 20 is NaN: the gradients of all these keys become NaN, and those of later keys,
// which are hidden from it, do not.
TEST_P(HiddenValuesOnEverySet, FollowANaNThatARowSees) {
  constexpr std::int64_t kLength = 40, kRow = 7, kKey = 20;
  const Tensor q = random({1, 1, kLength, 8}, DType::f32, 1), v = random({1, 1, kLength, 8}, DType::f32, 3),
               dout = random({1, 1, kLength, 8}, DType::f32, 4);
  Tensor k = random({1, 1, kLength, 8}, DType::f32, 2);
  k.view().at<float>(0, 0, kKey, 3) = std::nanf("");
  Tensor keep({kLength, kLength}, DType::boolean);
  for (std::int64_t i = 0; i < kLength; ++i) {
    for (std::int64_t j = 0; j < kLength; ++j) keep.view().at<bool>(i, j) = i == kRow ? j <= kKey : j != kKey;
  }
  const GradientsOfBoth found(q, k, v, {.dout = dout}, {.masks = {Mask::keep(keep)}});
  EXPECT_TRUE(std::isnan(found.dk[0].view().at<float>(0, 0, 0, 0)));
  EXPECT_FALSE(std::isnan(found.dk[0].view().at<float>(0, 0, kKey + 1, 0)));
  EXPECT_TRUE(same_nans(found.dk[0], found.dk[1]));
  EXPECT_TRUE(same_nans(found.dv[0], found.dv[1]));
  EXPECT_TRUE(same_nans(found.dq[0], found.dq[1]));
}

// A row that sees no key adds nothing to the sinks' gradient, for any upstream gradient and any forward results.
TEST_P(HiddenValuesOnEverySet, GiveNothingToSinksFromARowThatSeesNoKey) {
  constexpr std::int64_t kLength = 40, kRow = 7;
  const Tensor q = random({1, 2, kLength, 8}, DType::f32, 1), k = random({1, 2, kLength, 8}, DType::f32, 2),
               v = random({1, 2, kLength, 8}, DType::f32, 3), sinks = random({2}, DType::f32, 5);
  Tensor dout = random({1, 2, kLength, 8}, DType::f32, 4), keep({kLength, kLength}, DType::boolean);
  for (std::int64_t i = 0; i < kLength; ++i) {
    for (std::int64_t j = 0; j < kLength; ++j) keep.view().at<bool>(i, j) = i != kRow;
  }
  dout.view().at<float>(0, 1, kRow, 3) = std::nanf("");
  const AttentionOptions options{.masks = {Mask::keep(keep)}, .sinks = sinks};
  Tensor out(q.shape()), lse({1, 2, kLength});
  attention({.out = out, .lse = lse}, q, k, v, options);
  for (const bool handed : {false, true}) {
    AttentionUpstream upstream{.dout = dout};
    if (handed) upstream.out = out, upstream.lse = lse;
    const GradientsOfBoth found(q, k, v, upstream, options);
    for (std::int64_t head = 0; head < 2; ++head) {
      EXPECT_NEAR(found.dsinks[0].view().at<float>(head), found.dsinks[1].view().at<float>(head), 1e-5) << handed;
    }
    EXPECT_TRUE(same_nans(found.dq[0], found.dq[1])) << handed;
    EXPECT_FALSE(std::isnan(found.dq[0].view().at<float>(0, 1, kRow, 0))) << handed;
  }
}

// Softcap makes an infinite score finite, and its gradient there is 0.
TEST_P(HiddenValuesOnEverySet, PassNoGradientWhereAScoreIsCapped) {
  const Tensor q = random({1, 1, 20, 8}, DType::f32, 1), v = random({1, 1, 20, 8}, DType::f32, 3),
               dout = random({1, 1, 20, 8}, DType::f32, 4);
  Tensor k = random({1, 1, 20, 8}, DType::f32, 2);
  k.view().at<float>(0, 0, 5, 3) = std::numeric_limits<float>::infinity();
  const GradientsOfBoth found(q, k, v, {.dout = dout}, {.softcap = 5.0});
  for (std::size_t n = 0; n < 2; ++n) {
    for (const Tensor* tensor : {&found.dq[n], &found.dk[n], &found.dv[n]}) {
      for (const float x : tensor->values<float>()) ASSERT_TRUE(std::isfinite(x)) << n;
    }
  }
}

// −inf in a Mask::add masks the key for any score; a fill does not mask: the key is seen with its new score.
TEST(HiddenValues, AreHiddenByAnAddedInfinityAndNotByAFill) {
  const Tensor query = Tensor::from<double>({1, 1, 1, 1}, {1.0});
  const Tensor key = Tensor::from<double>({1, 1, 2, 1}, {0.5, std::nan("")});
  const Tensor value = Tensor::from<double>({1, 1, 2, 1}, {3.0, std::nan("")});
  const Tensor bias = Tensor::from<double>({1, 2}, {0.0, -std::numeric_limits<double>::infinity()});
  Tensor second({1, 2}, DType::boolean);
  second.values<bool>()[1] = true;
  for (const DType dtype : {DType::f32, DType::f64}) {
    const Tensor q = query.to(dtype), k = key.to(dtype), v = value.to(dtype), b = bias.to(dtype);
    EXPECT_EQ(attention(q, k, v, {.masks = {Mask::add(b)}}).to(DType::f64).values<double>()[0], 3.0);
    EXPECT_TRUE(
        std::isnan(attention(q, k, v, {.masks = {Mask::fill(second, -1e9)}}).to(DType::f64).values<double>()[0]));
  }
}

// A key whose weight is dropped, or underflows to 0, is still seen.
TEST(HiddenValues, AreSeenWithAWeightOfZero) {
  const Tensor query = Tensor::from<double>({1, 1, 1, 1}, {1.0});
  const Tensor key = Tensor::from<double>({1, 1, 2, 1}, {0.0, -1e30});
  const Tensor value = Tensor::from<double>({1, 1, 2, 1}, {3.0, std::nan("")});
  for (const DType dtype : {DType::f32, DType::f64}) {
    const Tensor q = query.to(dtype), k = key.to(dtype), v = value.to(dtype);
    EXPECT_TRUE(std::isnan(attention(q, k, v).to(DType::f64).values<double>()[0]));
    EXPECT_TRUE(std::isnan(attention(q, k, v, {.dropout = {.rate = 1.0}}).to(DType::f64).values<double>()[0]));
  }
}

}  // namespace
}  // namespace rapt::test
