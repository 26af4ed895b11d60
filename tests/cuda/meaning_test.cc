// The device headers that define semantics, tested on the host: visible keys and queries, the sequence of a row,
// dropout, and the softmax of a row.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <vector>

#include <gtest/gtest.h>

#include "cases/case.h"
#include "core/problem.h"
#include "cuda/elements.cuh"
#include "cuda/philox.cuh"
#include "cuda/row_state.cuh"
#include "cuda/visible.cuh"

namespace rapt::cuda {
namespace {

constexpr std::int64_t kOpen = AttentionProblem::kOpen;

// Arguments whose only list is `sequences`.
Arguments call_with(const std::vector<Sequence>& sequences) {
  Arguments call;
  call.sequence_count = static_cast<std::int32_t>(sequences.size());
  std::memcpy(call.lists.bytes, sequences.data(), sequences.size() * sizeof(Sequence));
  return call;
}

// Draws every way to limit the keys of a row, open sides and empty rows included.
struct Drawn {
  explicit Drawn(std::uint64_t seed) {
    cases::Stream stream(seed);
    const auto side = [&] { return stream.chance(0.3) ? kOpen : stream.integer(0, 6); };
    sequence.query_count = static_cast<std::int32_t>(stream.integer(0, 12));
    sequence.key_count = static_cast<std::int32_t>(stream.integer(0, 12));
    sequence.offset = static_cast<std::int32_t>(stream.integer(-8, 12));
    call.left = side(), call.right = side();
    if (stream.chance(0.5)) call.first_keys = stream.integer(1, 5), call.right_of_first = side();
  }

  // Whether query i sees key j by the definition in cuda/arguments.h.
  bool sees(std::int64_t i, std::int64_t j) const {
    const std::int64_t position = i + sequence.offset;
    if (j < 0 || j >= sequence.key_count) return false;
    return (j >= position - call.left && j <= position + call.right) ||
           (j < call.first_keys && j <= position + call.right_of_first);
  }

  Sequence sequence;
  Arguments call;
};

constexpr std::uint64_t kDraws = 5000;

TEST(VisibleKeys, AreThoseOfTheDefinition) {
  for (std::uint64_t seed = 0; seed < kDraws; ++seed) {
    const Drawn drawn(seed);
    for (std::int32_t i = 0; i < drawn.sequence.query_count; ++i) {
      const VisibleKeys keys = visible_keys(drawn.call, drawn.sequence, i);
      ASSERT_LE(keys.first_end, keys.begin) << "seed " << seed << ", query " << i;
      ASSERT_LE(keys.begin, keys.end) << "seed " << seed << ", query " << i;
      ASSERT_TRUE(keys.first_end == 0 || keys.first_end < keys.begin || keys.sees_none() || keys.begin == keys.end);
      bool any = false;
      for (std::int32_t j = 0; j < drawn.sequence.key_count + 3; ++j) {
        ASSERT_EQ(keys.sees(j), drawn.sees(i, j)) << "seed " << seed << ", query " << i << ", key " << j;
        any = any || keys.sees(j);
      }
      ASSERT_EQ(keys.sees_none(), !any) << "seed " << seed << ", query " << i;
    }
  }
}

TEST(VisibleKeys, SayWhetherARangeIsSeen) {
  for (std::uint64_t seed = 0; seed < kDraws; ++seed) {
    const Drawn drawn(seed);
    const VisibleKeys keys = visible_keys(drawn.call, drawn.sequence, 1);
    for (std::int32_t from = 0; from < 14; ++from) {
      bool any = false, all = true;
      for (std::int32_t to = from + 1; to < 15; ++to) {
        any = any || keys.sees(to - 1), all = all && keys.sees(to - 1);
        ASSERT_EQ(keys.sees_any(from, to), any) << "seed " << seed << ": " << from << " to " << to;
        ASSERT_EQ(keys.sees_all(from, to), all) << "seed " << seed << ": " << from << " to " << to;
      }
      ASSERT_FALSE(keys.sees_any(from, from));
    }
  }
}

TEST(VisibleQueries, AreTheShortestRange) {
  for (std::uint64_t seed = 0; seed < kDraws; ++seed) {
    const Drawn drawn(seed);
    for (std::int32_t from = 0; from < 13; ++from) {
      for (std::int32_t to = from; to < 15; to += 3) {
        QueryRange wanted;
        for (std::int32_t i = drawn.sequence.query_count - 1; i >= 0; --i) {
          bool sees = false;
          for (std::int32_t j = from; j < to; ++j) sees = sees || drawn.sees(i, j);
          if (!sees) continue;
          wanted.begin = i;
          wanted.end = std::max(wanted.end, i + 1);
        }
        const QueryRange queries = visible_queries(drawn.call, drawn.sequence, from, to);
        if (wanted.begin == wanted.end) {
          EXPECT_GE(queries.end, queries.begin);  // no query sees these keys: any valid range will do
          continue;
        }
        ASSERT_EQ(queries.begin, wanted.begin) << "seed " << seed << ": " << from << " to " << to;
        ASSERT_EQ(queries.end, wanted.end) << "seed " << seed << ": " << from << " to " << to;
      }
    }
  }
}

TEST(VisibleKeys, DoNotOverflowFarFromTheKeys) {
  constexpr std::int32_t kMost = std::numeric_limits<std::int32_t>::max();
  Arguments call;
  call.left = call.right = kOpen;
  Sequence sequence{.query_count = kMost, .key_count = kMost, .offset = kMost};
  const VisibleKeys keys = visible_keys(call, sequence, kMost);
  EXPECT_EQ(keys.begin, 0);
  EXPECT_EQ(keys.end, kMost);
  sequence.offset = -kMost;
  const QueryRange queries = visible_queries(call, sequence, kMost - 1, kMost);
  EXPECT_EQ(queries.begin, 0);
  EXPECT_EQ(queries.end, kMost);
}

TEST(Sequences, AreFoundByTheirRows) {
  // Packed sequences: some without queries, some without keys, and some that end before the next one begins.
  const std::vector<Sequence> packed = {{.query_begin = 0, .query_count = 0, .key_begin = 0, .key_count = 2},
                                        {.query_begin = 0, .query_count = 3, .key_begin = 2, .key_count = 0},
                                        {.query_begin = 3, .query_count = 0, .key_begin = 2, .key_count = 0},
                                        {.query_begin = 3, .query_count = 4, .key_begin = 2, .key_count = 3},
                                        {.query_begin = 7, .query_count = 0, .key_begin = 6, .key_count = 1},
                                        {.query_begin = 7, .query_count = 1, .key_begin = 8, .key_count = 1}};
  const Arguments call = call_with(packed);
  for (std::int32_t query = 0; query < 8; ++query) {
    const Sequence& found = sequence_of_query(call, 0, query);
    EXPECT_LE(found.query_begin, query);
    EXPECT_LT(query - found.query_begin, found.query_count) << query;
  }
  constexpr std::int32_t kOwner[] = {0, 0, 3, 3, 3, -1, 4, -1, 5, -1};
  for (std::int32_t key = 0; key < 10; ++key) {
    const Sequence* found = sequence_of_key(call, 0, key);
    EXPECT_EQ(found == nullptr ? -1 : found - &call.sequence(0), kOwner[key]) << "key " << key;
  }
  const Arguments rows = call_with({{.batch = 0, .query_count = 5, .key_count = 2},
                                    {.batch = 1, .query_count = 5, .key_count = 0},
                                    {.batch = 2, .query_count = 5, .key_count = 7}});
  for (std::int32_t b = 0; b < 3; ++b) {
    EXPECT_EQ(sequence_of_query(rows, b, 4).batch, b);
    EXPECT_EQ(sequence_of_key(rows, b, 1) != nullptr, b != 1);
    EXPECT_EQ(sequence_of_key(rows, b, 2) != nullptr, b == 2);
  }
}

TEST(DropoutOfDevices, DropsWhatTheDefinitionDrops) {
  const ResolvedDropout resolved{.on = true,
                                 .threshold = std::uint64_t{1} << 31,
                                 .keep_scale = 2.0,
                                 .key = philox_key(0x123456789ABCDEFULL),
                                 .batch_start = 5,
                                 .head_start = 0xFFFFFFFF,
                                 .query_start = 9};
  const DropoutTerm term{.on = true,
                         .threshold = resolved.threshold,
                         .keep_scale = 2.0F,
                         .key = {resolved.key[0], resolved.key[1]},
                         .batch_start = 5,
                         .head_start = 0xFFFFFFFF,
                         .query_start = 9};
  for (std::int32_t i = 0; i < 20; ++i) {
    for (std::int32_t j = 0; j < 50; ++j) {
      EXPECT_EQ(dropout_factor(term, 3, 4, i, j), resolved.keeps(3, 4, i, j) ? 2.0F : 0.0F);
    }
  }
  EXPECT_EQ(dropout_factor(DropoutTerm(), 0, 0, 0, 0), 1.0F);
}

TEST(RowState, MergesAsOneSoftmax) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  RowState state;
  EXPECT_EQ(state.lse(), -kInfinity);
  EXPECT_EQ(state.weight(0.0F), 0.0F);
  (void)state.merge({2.0F, 3.0F});
  (void)state.merge({5.0F, 1.5F});
  const double exact = std::log(3.0 * std::exp(2.0) + 1.5 * std::exp(5.0));
  EXPECT_NEAR(state.lse(), exact, 1e-6);
  EXPECT_NEAR(state.weight(4.0F), std::exp(4.0 - exact), 1e-7);
  EXPECT_EQ(state.weight(kHidden), 0.0F);
  for (const float bad : {kInfinity, std::numeric_limits<float>::quiet_NaN()}) {
    for (const bool first : {true, false}) {
      RowState spoilt;
      if (!first) (void)spoilt.merge({1.0F, 1.0F});
      (void)spoilt.merge({bad, 1.0F});
      if (first) (void)spoilt.merge({1.0F, 1.0F});
      EXPECT_TRUE(std::isnan(spoilt.lse()));
      EXPECT_TRUE(std::isnan(spoilt.weight(kHidden)));
    }
  }
  EXPECT_TRUE(std::isnan(maximum_of(1.0F, NAN)) && std::isnan(maximum_of(NAN, 1.0F)));
}

}  // namespace
}  // namespace rapt::cuda
