// The plan of a forward call on tensor cores, as plain arithmetic that host and device share: which tiles there are, in
// which order they are handed out, and which steps of keys a tile visits.
//
// A tile is 128 rows, two warpgroups of 64: 128 queries of one head, or fewer queries of several heads of a group. Its
// keys come in steps at absolute multiples of the step size within the sequence, and steps form chunks of kChunkKeys. A
// row's bits depend on step and chunk sizes, never on tiles or their order.
#pragma once

#include <cstddef>
#include <cstdint>

#include "cuda/arguments.h"

namespace rapt::cuda {

inline constexpr int kTileRows = 128;
inline constexpr int kGroupRows = 64;     // rows of a warpgroup
inline constexpr int kChunkKeys = 2048;   // C = S: a chunk is a span
inline constexpr int kMaxHeadSize = 256;

// The kernel's head size: D and Dv are padded to it with zeros.
constexpr int padded_head_size(int head_size, int value_size) {
  const int larger = head_size > value_size ? head_size : value_size;
  return larger <= 64 ? 64 : larger <= 128 ? 128 : 256;
}

// Keys in a step. It is part of the arithmetic: p is rounded beside the maximum of its step.
constexpr int step_keys(int padded_size, bool general) { return padded_size > 128 || general ? 64 : 128; }

// The keys that a query may see, masks apart: first … last − 1, and 0 … initial − 1.
struct QueryKeys {
  std::int32_t first, last, initial;

  RAPT_HOST_DEVICE bool sees(std::int32_t key) const { return (key >= first && key < last) || key < initial; }
};

RAPT_HOST_DEVICE std::int32_t clamp_key(std::int64_t key, std::int32_t keys) {
  return key < 0 ? 0 : key > keys ? keys : static_cast<std::int32_t>(key);
}

RAPT_HOST_DEVICE QueryKeys query_keys(const Arguments& call, std::int64_t position, std::int32_t keys) {
  const std::int64_t initial = position + call.right_of_first + 1;
  return {clamp_key(position - call.left, keys), clamp_key(position + call.right + 1, keys),
          clamp_key(initial < call.first_keys ? initial : call.first_keys, keys)};
}

// The steps of a tile: 0 … initial_end − 1, then begin … end − 1. Of these, steps within full_begin … full_end − 1 and
// 0 … full_initial_end − 1 are visible to all rows; in all others some keys are hidden from some rows.
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

// For queries at positions `lowest` … `highest` of a sequence. A tile that sees nothing still visits one step, so that
// its rows are written.
RAPT_HOST_DEVICE StepRange visible_steps(const Arguments& call, std::int64_t lowest, std::int64_t highest,
                                         std::int32_t keys, std::int32_t step) {
  const QueryKeys low = query_keys(call, lowest, keys), high = query_keys(call, highest, keys);
  StepRange range;
  range.begin = low.first / step;
  range.end = (high.last + step - 1) / step;
  range.initial_end = (high.initial + step - 1) / step;
  if (high.last <= low.first) range.begin = range.end = range.initial_end;  // the window is empty for all rows
  if (range.initial_end > 0 && range.initial_end >= range.begin) {          // the ranges meet: one is enough
    range.end = range.end > range.initial_end ? range.end : range.initial_end;
    range.begin = 0;
    range.initial_end = 0;
  }
  if (range.initial_end == 0 && range.end <= range.begin) {
    range.begin = 0;
    range.end = 1;
  }
  range.full_initial_end = low.initial / step;
  range.full_begin = (high.first + step - 1) / step;
  range.full_end = low.last / step;
  return range;
}

// How tiles are numbered, in the order in which they are handed out. A column is a head of a sequence, or several heads
// where a tile holds those of a group; its tiles differ in their queries. Columns form sections whose k and v fit in the
// L2 cache together; inside a section the longest tiles of all columns come first.
struct RowsPlan {
  std::int32_t step = 128;           // keys
  std::int32_t query_shift = 7;      // a tile holds 2^query_shift queries of 128 / 2^query_shift heads
  std::int32_t column_heads = 1;     // heads of a tile
  std::int32_t group_columns = 1;    // columns of a group of heads
  std::int32_t columns = 0;          // listed: of one sequence; else of all
  std::int32_t tiles_per_column = 0; // listed: at most; the list's length is on the device
  std::int32_t section = 1;          // columns
  bool listed = false;               // sequences differ: their tiles are in a list (cuda/list_tiles.cu)

  RAPT_HOST_DEVICE std::int32_t columns_per_sequence(const Arguments& call) const {
    return call.kv_heads * group_columns;
  }
};

RowsPlan plan_rows(const Arguments& call, bool general);

// Tiles that a listed call has at most.
std::int64_t listed_tiles_bound(const Arguments& call, const RowsPlan& plan);

// The tile with number `number`: its column, and its rank among the tiles of the column, longest first.
struct TilePlace {
  std::int32_t column, rank;
};
RAPT_HOST_DEVICE TilePlace place_of(const RowsPlan& plan, std::int32_t tiles_per_column, std::int32_t number) {
  const std::int32_t section = number / (plan.section * tiles_per_column);
  const std::int32_t within = number - section * plan.section * tiles_per_column;
  const std::int32_t left = plan.columns - section * plan.section;
  const std::int32_t width = left < plan.section ? left : plan.section;
  return {section * plan.section + within % width, within / width};
}

// One tile: rows and keys of the tensors, and positions within the sequence.
struct Tile {
  std::int32_t batch = 0, index = 0;          // row of the tensors; b of the dropout counter
  std::int32_t head = 0, kv_head = 0;         // first query head
  std::int32_t heads = 1;                     // heads that exist, from `head` on
  std::int32_t first_query = 0, queries = 0;  // of the sequence: queries that exist, from first_query on
  std::int32_t query_row = 0, key_row = 0;    // rows of the tensors: first_query, and key 0
  std::int32_t position = 0;                  // of first_query
  std::int32_t keys = 0;                      // of the sequence
  StepRange steps{};
};

// Tile `part` (128 or fewer queries, ascending) of column `column` of a sequence.
RAPT_HOST_DEVICE Tile make_tile(const Arguments& call, const RowsPlan& plan, const Sequence& sequence,
                                std::int32_t column, std::int32_t part) {
  const std::int32_t group = column / plan.group_columns;
  const std::int32_t head_in_group = (column - group * plan.group_columns) * plan.column_heads;
  const std::int32_t first = part << plan.query_shift;
  const std::int32_t in_tile = 1 << plan.query_shift, left = sequence.query_count - first;
  Tile tile;
  tile.batch = sequence.batch;
  tile.index = sequence.index;
  tile.kv_head = group;
  tile.head = group * call.group + head_in_group;
  tile.heads = call.group - head_in_group < plan.column_heads ? call.group - head_in_group : plan.column_heads;
  tile.first_query = first;
  tile.queries = left < in_tile ? left : in_tile;
  tile.query_row = sequence.query_begin + first;
  tile.key_row = sequence.key_begin;
  tile.position = sequence.offset + first;
  tile.keys = sequence.key_count;
  tile.steps = visible_steps(call, tile.position, std::int64_t{tile.position} + tile.queries - 1, tile.keys, plan.step);
  return tile;
}

}  // namespace rapt::cuda
