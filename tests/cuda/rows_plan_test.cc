// The plan of the rows kernel: tiles and steps of keys, as plain arithmetic.

#include "cuda/rows_plan.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <map>
#include <span>
#include <string>
#include <tuple>
#include <vector>

#include <gtest/gtest.h>

#include "cases/list.h"
#include "support/cuda/cuda_call.h"
#include "support/sanitizers.h"

namespace rapt::cuda {
namespace {

// All tiles, in the order in which they are handed out (tile_number in cuda/rows_produce.cuh).
struct PlannedTile {
  Tile tile;
  std::int32_t section = 0;
};
std::vector<PlannedTile> tiles_of(const Arguments& call, std::span<const Sequence> sequences, const RowsPlan& plan) {
  const std::vector<TileEntry> list = plan.listed ? list_tiles(call, plan, sequences) : std::vector<TileEntry>();
  if (plan.listed) {
    EXPECT_EQ(static_cast<std::int32_t>(list.size()), plan.tiles_per_column);
  }
  std::vector<PlannedTile> tiles;
  for (std::int32_t number = 0; number < plan.columns * plan.tiles_per_column; ++number) {
    const TilePlace place = place_of(plan, number);
    EXPECT_LT(place.column, plan.columns);
    EXPECT_LT(place.rank, plan.tiles_per_column);
    std::int32_t sequence = 0, column = place.column, part = plan.tiles_per_column - 1 - place.rank;
    if (plan.listed) {
      sequence = list[static_cast<std::size_t>(place.rank)].sequence;
      part = list[static_cast<std::size_t>(place.rank)].part;
    } else {
      sequence = column / plan.columns_per_sequence(call);
      column -= sequence * plan.columns_per_sequence(call);
    }
    tiles.push_back({make_tile(call, plan, sequences[static_cast<std::size_t>(sequence)], column, part),
                     place.column / plan.section});
  }
  return tiles;
}

// Whether query i of a sequence sees key j as rapt/attention.h defines it, ignoring masks.
bool sees(const Arguments& call, const Sequence& sequence, std::int64_t i, std::int64_t j) {
  const std::int64_t position = i + sequence.offset;
  const bool in_window = j >= position - call.left && j <= position + call.right;
  const bool is_first = j < call.first_keys && j <= position + call.right_of_first;
  return j < sequence.key_count && (in_window || is_first);
}

// The steps that a tile visits, in order.
std::vector<std::int32_t> steps_of(const Tile& tile) {
  std::vector<std::int32_t> steps;
  for (std::int32_t step = tile.steps.first();; step = tile.steps.next(step)) {
    steps.push_back(step);
    if (tile.steps.is_last(step) || steps.size() > 100000) return steps;
  }
}

// Expects that each query of each head is in exactly one tile.
void expect_every_row_once(const Arguments& call, std::span<const Sequence> sequences,
                           const std::vector<PlannedTile>& tiles) {
  std::map<std::tuple<std::int32_t, std::int32_t, std::int32_t>, int> found;  // batch row, head, row of the tensors
  for (const auto& [tile, section] : tiles) {
    EXPECT_GE(tile.queries, 1);
    EXPECT_GE(tile.heads, 1);
    EXPECT_LE(tile.queries * tile.heads, kTileRows);
    for (std::int32_t head = tile.head; head < tile.head + tile.heads; ++head) {
      EXPECT_EQ(head / call.group, tile.kv_head);
      for (std::int32_t i = 0; i < tile.queries; ++i) ++found[{tile.sequence.batch, head, tile.query_row() + i}];
    }
  }
  std::size_t rows = 0;
  for (const Sequence& sequence : sequences) {
    rows += static_cast<std::size_t>(sequence.query_count) * static_cast<std::size_t>(call.query_heads);
  }
  EXPECT_EQ(found.size(), rows);
  EXPECT_TRUE(std::all_of(found.begin(), found.end(), [](const auto& row) { return row.second == 1; }));
}

// Expects that steps ascend and contain every key that a query of the tile sees, and that all queries of the tile see
// all keys of full steps.
void expect_every_visible_key_once(const Arguments& call, const RowsPlan& plan, const Tile& tile) {
  const std::vector<std::int32_t> steps = steps_of(tile);
  EXPECT_TRUE(std::is_sorted(steps.begin(), steps.end(), std::less_equal<>()));  // each step once
  EXPECT_EQ(static_cast<std::int32_t>(steps.size()), tile.steps.count());
  std::vector<bool> visited(static_cast<std::size_t>(tile.sequence.key_count), false);
  for (const std::int32_t step : steps) {
    const std::int32_t end = std::min(tile.sequence.key_count, (step + 1) * plan.step);
    for (std::int32_t j = step * plan.step; j < end; ++j) visited[static_cast<std::size_t>(j)] = true;
  }
  for (std::int32_t i = tile.first_query; i < tile.first_query + tile.queries; ++i) {
    const VisibleKeys keys = visible_keys(call, tile.sequence, i);
    for (std::int32_t j = 0; j < tile.sequence.key_count; ++j) {
      const bool seen = sees(call, tile.sequence, i, j);
      ASSERT_EQ(keys.sees(j), seen) << "query " << i << ", key " << j;
      ASSERT_TRUE(!seen || visited[static_cast<std::size_t>(j)]) << "query " << i << ", key " << j;
    }
    for (const std::int32_t step : steps) {
      if (!tile.steps.is_full(step)) continue;
      for (std::int32_t j = step * plan.step; j < (step + 1) * plan.step; ++j)
        ASSERT_TRUE(sees(call, tile.sequence, i, j)) << "query " << i << ", key " << j << " of a full step";
    }
  }
}

void expect_good_plan(const Arguments& call, std::span<const Sequence> sequences, bool general) {
  const RowsPlan plan = plan_rows(call, sequences, general);
  const std::vector<PlannedTile> tiles = tiles_of(call, sequences, plan);
  expect_every_row_once(call, sequences, tiles);
  for (const auto& [tile, section] : tiles) {
    expect_every_visible_key_once(call, plan, tile);
    if (testing::Test::HasFatalFailure()) return;
  }
}

TEST(RowsPlan, TilesHoldEveryVisiblePairOfTheCaseListOnce) {
  for (const cases::CaseSpec& spec : cases::all_cases()) {
    SCOPED_TRACE(describe(spec));
    if (spec.head_size > kMaxHeadSize || spec.query_type == DType::f64) continue;
    const cases::Case test(spec);
    const test::CudaCall call(test);
    if (call.arguments().query_heads == 0) continue;  // nothing is launched
    for (const bool general : {false, true}) expect_good_plan(call.arguments(), call.sequences(), general);
    if (testing::Test::HasFailure()) return;
  }
}

TEST(RowsPlan, TilesHoldEveryVisiblePairOfRandomCasesOnce) {
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    const cases::CaseSpec spec = cases::random_case(seed);
    SCOPED_TRACE(describe(spec));
    if (spec.head_size > kMaxHeadSize || spec.query_type == DType::f64 || spec.queries * spec.keys > 30000) continue;
    const cases::Case test(spec);
    const test::CudaCall call(test);
    if (call.arguments().query_heads == 0) continue;
    expect_good_plan(call.arguments(), call.sequences(), seed % 2 == 0);
    if (testing::Test::HasFailure()) return;
  }
}

// A call of one sequence with one head, and the given lengths and ranges.
struct Range {
  std::int64_t left, right, first_keys, right_of_first;
};
Arguments call_with(const Range& range, std::int32_t queries, std::int32_t keys) {
  Arguments call;
  call.batch = call.query_heads = call.kv_heads = call.group = 1;
  call.queries = queries, call.keys = keys;
  call.head_size = call.value_size = 64;
  call.sequence_count = 1;
  call.left = range.left, call.right = range.right;
  call.first_keys = range.first_keys, call.right_of_first = range.right_of_first;
  return call;
}

constexpr std::int64_t kOpen = std::numeric_limits<std::int64_t>::max() / 4;

TEST(RowsPlan, StepsAreRightAroundEveryBoundary) {
  const Range ranges[] = {
      {kOpen, kOpen, 0, kOpen}, {kOpen, 0, 0, 0}, {0, 0, 0, 0},       {127, 0, 0, 0},       {128, 0, 5, 0},
      {63, 64, 0, kOpen},       {300, 0, 130, 0}, {10, 10, 1, kOpen}, {10, 10, 200, 0},     {kOpen, 5, 400, 40},
      {0, 0, 128, kOpen},       {-3, 9, 0, 0},    {5, -3, 0, 0},      {-40, 20, 64, kOpen}, {200, -130, 140, 0}};
  for (const Range& range : ranges) {
    for (const std::int32_t queries : {1, 5, 64, 128, 129, 200}) {
      for (const std::int32_t keys : {0, 1, 64, 127, 128, 129, 300}) {
        for (const std::int32_t offset : {0, keys - queries, 17, -130, 1000}) {
          SCOPED_TRACE(testing::Message() << "left " << range.left << ", right " << range.right << ", first "
                                          << range.first_keys << " to " << range.right_of_first << ", queries "
                                          << queries << ", keys " << keys << ", offset " << offset);
          const Arguments call = call_with(range, queries, keys);
          const Sequence sequence{.query_count = queries, .key_count = keys, .offset = offset};
          expect_good_plan(call, {&sequence, 1}, false);
          if (testing::Test::HasFailure()) return;
        }
      }
    }
  }
}

// A call with grouped heads: `group` query heads share each kv head.
Arguments batched(std::int32_t batch, std::int32_t kv_heads, std::int32_t group, std::int32_t queries,
                  std::int32_t keys) {
  Arguments call = call_with({kOpen, 0, 0, 0}, queries, keys);
  call.batch = call.sequence_count = batch;
  call.kv_heads = kv_heads, call.group = group, call.query_heads = kv_heads * group;
  return call;
}

std::vector<Sequence> sequences_of(const Arguments& call) {
  std::vector<Sequence> sequences;
  for (std::int32_t b = 0; b < call.batch; ++b) {
    sequences.push_back({.batch = b,
                         .index = b,
                         .query_count = call.queries,
                         .key_count = call.keys,
                         .offset = call.keys - call.queries});
  }
  return sequences;
}

TEST(RowsPlan, HeadsOfAGroupShareTilesWhereQueriesAreFew) {
  for (const std::int32_t group : {1, 2, 3, 8, 12, 64, 200}) {
    for (const std::int32_t queries : {1, 2, 3, 16, 63, 64, 65, 128, 130}) {
      if (test::kSlow && group * queries > 2000) continue;  // the largest take nearly all of the time
      SCOPED_TRACE(testing::Message() << "group " << group << ", queries " << queries);
      const Arguments call = batched(2, 2, group, queries, 200);
      expect_good_plan(call, sequences_of(call), false);
    }
  }
  const Arguments decode = batched(1, 4, 8, 1, 5000);
  EXPECT_EQ(tiles_of(decode, sequences_of(decode), plan_rows(decode, sequences_of(decode), false)).size(), 4U)
      << "one tile holds all heads of a group";
}

// The steps of a row, and so its chunks, begin at the same keys whatever else is in the call.
TEST(RowsPlan, StepsDoNotDependOnTheBatch) {
  for (const bool general : {false, true}) {
    for (const int size : {64, 128, 256}) EXPECT_EQ(kChunkKeys % step_keys(size, general), 0);
    const Arguments alone = batched(1, 1, 1, 1, 9000);
    const std::int32_t step = plan_rows(alone, sequences_of(alone), general).step;
    for (const std::int32_t batch : {1, 3, 64}) {
      for (const std::int32_t group : {1, 4}) {
        for (const std::int32_t queries : {1, 100, 4096}) {
          const Arguments call = batched(batch, 2, group, queries, 9000);
          std::vector<Sequence> sequences = sequences_of(call);
          EXPECT_EQ(plan_rows(call, sequences, general).step, step);
          sequences.front().key_count /= 2;  // unlike the others, so the plan is listed
          EXPECT_EQ(plan_rows(call, sequences, general).step, step);
        }
      }
    }
  }
}

void expect_longest_first(const Arguments& call, const std::vector<Sequence>& sequences) {
  const RowsPlan plan = plan_rows(call, sequences, false);
  const std::vector<PlannedTile> tiles = tiles_of(call, sequences, plan);
  for (std::size_t n = 1; n < tiles.size(); ++n) {
    if (tiles[n].section != tiles[n - 1].section) continue;
    ASSERT_LE(tiles[n].tile.steps.count(), tiles[n - 1].tile.steps.count()) << "tile " << n;
  }
}

TEST(RowsPlan, TheLongestTilesOfASectionComeFirst) {
  const Arguments call = batched(3, 4, 2, 3000, 3000);  // causal
  expect_longest_first(call, sequences_of(call));
  std::vector<Sequence> different = sequences_of(call);
  different[0].query_count = 500, different[0].key_count = 700;
  different[2].query_count = 1111, different[2].offset = 0;
  EXPECT_TRUE(plan_rows(call, different, false).listed);
  expect_longest_first(call, different);
}

TEST(RowsPlan, ATileThatSeesNothingVisitsOneStep) {
  Arguments call = call_with({kOpen, 0, 0, 0}, 300, 100);
  const Sequence before{.query_count = 300, .key_count = 100, .offset = -1000};
  for (const auto& [tile, section] : tiles_of(call, {&before, 1}, plan_rows(call, {&before, 1}, false))) {
    EXPECT_EQ(steps_of(tile), std::vector<std::int32_t>{0});
    EXPECT_FALSE(tile.steps.is_full(0));
  }
  const Sequence none{.query_count = 300};
  call.keys = 0;
  for (const auto& [tile, section] : tiles_of(call, {&none, 1}, plan_rows(call, {&none, 1}, false))) {
    EXPECT_EQ(steps_of(tile), std::vector<std::int32_t>{0});
    EXPECT_FALSE(tile.steps.is_full(0));
  }
}

}  // namespace
}  // namespace rapt::cuda
