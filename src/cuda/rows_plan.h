// The plan of a forward call on tensor cores, as plain arithmetic that host and device share: which tiles there are, in
// which order they are handed out, and which steps (ranges of keys) a tile visits.
//
// A tile has 128 rows, 64 for each of two warpgroups: 128 queries of one head, or fewer queries of several heads of a
// group. Its keys come in steps at absolute multiples of the step size within the sequence, and steps form chunks of
// kChunkKeys. A row's bits depend on step and chunk sizes, never on tiles or their order.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "cuda/visible.cuh"

namespace rapt::cuda {

inline constexpr int kTileRows = 128;
inline constexpr int kGroupRows = 64;    // rows of a warpgroup
inline constexpr int kChunkKeys = 2048;  // a multiple of every step size
inline constexpr int kMaxHeadSize = 256;

// The kernel's head size: D and Dv are padded to it with zeros.
constexpr int padded_head_size(int head_size, int value_size) {
  const int larger = head_size > value_size ? head_size : value_size;
  return larger <= 64 ? 64 : larger <= 128 ? 128 : 256;
}

// Keys in a step. The number is part of the arithmetic, because p is rounded relative to the maximum at its step.
constexpr int step_keys(int padded_size, bool general) { return padded_size > 128 || general ? 64 : 128; }

// The steps of a tile: 0 … initial_end − 1, then begin … end − 1. Of these steps, all keys of full_begin … full_end − 1
// and 0 … full_initial_end − 1 are visible to all rows; in all other steps, keys may be hidden from some rows.
struct StepRange {
  std::int32_t initial_end = 0, begin = 0, end = 0;
  std::int32_t full_initial_end = 0, full_begin = 0, full_end = 0;

  RAPT_HOST_DEVICE std::int32_t first() const { return initial_end > 0 ? 0 : begin; }
  RAPT_HOST_DEVICE std::int32_t next(std::int32_t step) const { return step + 1 == initial_end ? begin : step + 1; }
  RAPT_HOST_DEVICE bool is_last(std::int32_t step) const { return next(step) >= end; }
  RAPT_HOST_DEVICE bool is_full(std::int32_t step) const {
    return (step >= full_begin && step < full_end) || step < full_initial_end;
  }
  RAPT_HOST_DEVICE std::int32_t count() const { return initial_end + end - begin; }
};

// The steps for queries `lowest` … `highest` of a sequence. A tile whose rows see no key still visits one step, so that
// its rows are written. The ranges are computed from positions and not from visible_keys of the two queries, because
// either of them may see no key.
RAPT_HOST_DEVICE StepRange visible_steps(const Arguments& call, const Sequence& sequence, std::int32_t lowest,
                                         std::int32_t highest, std::int32_t step) {
  const std::int32_t keys = sequence.key_count;
  const std::int64_t low = std::int64_t{lowest} + sequence.offset, high = std::int64_t{highest} + sequence.offset;
  const auto window_begin = [&](std::int64_t position) { return clamp_to(position - call.left, keys); };
  const auto window_end = [&](std::int64_t position) { return clamp_to(position + call.right + 1, keys); };
  const auto first_end = [&](std::int64_t position) {
    const std::int64_t end = position + call.right_of_first + 1;
    return clamp_to(end < call.first_keys ? end : call.first_keys, keys);
  };
  const auto steps_to = [&](std::int32_t key) { return (key + step - 1) / step; };
  StepRange range;
  range.begin = window_begin(low) / step;
  range.end = steps_to(window_end(high));
  range.initial_end = steps_to(first_end(high));
  if (window_end(high) <= window_begin(low)) range.begin = range.end = range.initial_end;  // no window holds a key
  if (range.initial_end > 0 && range.initial_end >= range.begin) {                         // both ranges become one
    range.end = range.end > range.initial_end ? range.end : range.initial_end;
    range.begin = 0;
    range.initial_end = 0;
  }
  if (range.initial_end == 0 && range.end <= range.begin) {
    range.begin = 0;
    range.end = 1;
  }
  range.full_initial_end = first_end(low) / step;
  range.full_begin = steps_to(window_begin(high));
  range.full_end = window_end(low) / step;
  return range;
}

// How tiles are numbered; they are handed out in the order of their numbers. A column holds the tiles of one head, or
// of the several heads that share each tile, in one sequence (in all sequences if `listed`). Columns form sections,
// whose size is limited so that k and v are read from the L2 cache. Within a section, the longest tiles of all its
// columns come first.
struct RowsPlan {
  std::int32_t step = 128;         // keys of a step
  std::int32_t query_shift = 7;    // a tile holds 2^query_shift queries of 128 / 2^query_shift heads
  std::int32_t column_heads = 1;   // heads of a tile
  std::int32_t group_columns = 1;  // columns of a group of heads
  std::int32_t columns = 0;        // of the whole call
  std::int32_t tiles_per_column = 0;
  std::int32_t section = 1;  // columns of a section
  bool listed = false;       // sequences differ in length or offset: the tiles of a column come from a list

  RAPT_HOST_DEVICE std::int32_t columns_per_sequence(const Arguments& call) const {
    return call.kv_heads * group_columns;
  }
};

// `sequences` are those of the call, in host memory.
RowsPlan plan_rows(const Arguments& call, std::span<const Sequence> sequences, bool general);

// A tile of a listed call: part `part` of sequence `sequence`.
struct TileEntry {
  std::int32_t sequence, part;
};

// The tiles of a column of a listed call, longest first. Tiles of equal length are in the order of the sequences.
std::vector<TileEntry> list_tiles(const Arguments& call, const RowsPlan& plan, std::span<const Sequence> sequences);

// The place of the tile with number `number`: its column, and its rank in the order in which the tiles of the column
// are handed out.
struct TilePlace {
  std::int32_t column, rank;
};
RAPT_HOST_DEVICE TilePlace place_of(const RowsPlan& plan, std::int32_t number) {
  const std::int32_t in_section = plan.section * plan.tiles_per_column, section = number / in_section;
  const std::int32_t within = number - section * in_section;
  const std::int32_t left = plan.columns - section * plan.section;
  const std::int32_t width = left < plan.section ? left : plan.section;
  return {section * plan.section + within % width, within / width};
}

// One tile: `queries` queries of a sequence from `first_query` on, in `heads` heads from `head` on.
struct Tile {
  Sequence sequence{};
  std::int32_t head = 0, kv_head = 0, heads = 1;
  std::int32_t first_query = 0, queries = 0;  // at most 2^query_shift queries
  StepRange steps{};

  RAPT_HOST_DEVICE std::int32_t query_row() const { return sequence.query_begin + first_query; }  // of the tensors
};

// Tile `part` of column `column` of a sequence; parts count in ascending order of queries.
RAPT_HOST_DEVICE Tile make_tile(const Arguments& call, const RowsPlan& plan, const Sequence& sequence,
                                std::int32_t column, std::int32_t part) {
  const std::int32_t group = column / plan.group_columns;
  const std::int32_t head_in_group = (column - group * plan.group_columns) * plan.column_heads;
  const std::int32_t first = part << plan.query_shift;
  const std::int32_t in_tile = 1 << plan.query_shift, left = sequence.query_count - first;
  Tile tile;
  tile.sequence = sequence;
  tile.kv_head = group;
  tile.head = group * call.group + head_in_group;
  tile.heads = call.group - head_in_group < plan.column_heads ? call.group - head_in_group : plan.column_heads;
  tile.first_query = first;
  tile.queries = left < in_tile ? left : in_tile;
  tile.steps = visible_steps(call, sequence, first, first + tile.queries - 1, plan.step);
  return tile;
}

}  // namespace rapt::cuda
