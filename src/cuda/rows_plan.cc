#include "cuda/rows_plan.h"

#include <algorithm>

namespace rapt::cuda {

namespace {

// The limit in bytes for the keys and values of a section. It may exceed the L2 cache (50 MB), because the tiles of a
// section read the same part of k and v at about the same time. For short sequences (at most kLongKeys keys) the limit
// is lower, because their tiles differ more in length.
constexpr std::int64_t kLongSection = 64 << 20, kShortSection = 32 << 20;
constexpr std::int32_t kLongKeys = 2048;

bool alike(std::span<const Sequence> sequences) {
  const Sequence& first = sequences.front();
  return std::all_of(sequences.begin(), sequences.end(), [&](const Sequence& other) {
    return other.query_count == first.query_count && other.key_count == first.key_count && other.offset == first.offset;
  });
}

bool tiles_differ_in_length(const Arguments& call) {
  return call.right < call.keys || call.left < call.keys || call.first_keys > 0;
}

// A tile holds 2^shift queries of each of its heads. If the queries of a head fill at most half of a tile, several
// heads of a group share the tile.
std::int32_t query_shift(const Arguments& call) {
  std::int32_t shift = 7;
  while (shift > 0 && call.queries <= 1 << (shift - 1) && kTileRows >> shift < call.group) --shift;
  return shift;
}

std::int32_t parts_of(const Sequence& sequence, const RowsPlan& plan) {
  return (sequence.query_count + (1 << plan.query_shift) - 1) >> plan.query_shift;
}

}  // namespace

RowsPlan plan_rows(const Arguments& call, std::span<const Sequence> sequences, bool general) {
  RowsPlan plan;
  if (sequences.empty()) return plan;
  plan.step = step_keys(padded_head_size(call.head_size, call.value_size), general);
  plan.query_shift = query_shift(call);
  plan.column_heads = kTileRows >> plan.query_shift;
  plan.group_columns = (call.group + plan.column_heads - 1) / plan.column_heads;
  plan.listed = !alike(sequences);

  const std::int64_t bytes = std::int64_t{call.keys} * (call.head_size + call.value_size) * 2;  // of a kv head
  const std::int64_t budget = call.keys > kLongKeys ? kLongSection : kShortSection;
  const std::int64_t kv_heads = budget / std::max<std::int64_t>(1, bytes * (plan.listed ? call.batch : 1));
  const std::int64_t section = std::max<std::int64_t>(1, kv_heads) * plan.group_columns;
  plan.columns = plan.columns_per_sequence(call);
  if (plan.listed) {
    for (const Sequence& sequence : sequences) plan.tiles_per_column += parts_of(sequence, plan);
  } else {
    plan.columns *= static_cast<std::int32_t>(sequences.size());
    plan.tiles_per_column = parts_of(sequences.front(), plan);
  }
  // If all tiles have the same length, there is nothing to sort by length. Then a section is one column, so all tiles
  // of a column are handed out before those of the next column.
  const bool one_length = !plan.listed && !tiles_differ_in_length(call);
  plan.section = one_length ? 1 : static_cast<std::int32_t>(std::min<std::int64_t>(section, plan.columns));
  return plan;
}

std::vector<TileEntry> list_tiles(const Arguments& call, const RowsPlan& plan, std::span<const Sequence> sequences) {
  struct Item {
    TileEntry entry;
    std::int32_t steps;
  };
  std::vector<Item> items;
  items.reserve(static_cast<std::size_t>(plan.tiles_per_column));
  for (std::size_t n = 0; n < sequences.size(); ++n) {
    for (std::int32_t part = 0; part < parts_of(sequences[n], plan); ++part) {
      const Tile tile = make_tile(call, plan, sequences[n], 0, part);
      items.push_back({{static_cast<std::int32_t>(n), part}, tile.steps.count()});
    }
  }
  std::stable_sort(items.begin(), items.end(), [](const Item& a, const Item& b) { return a.steps > b.steps; });
  std::vector<TileEntry> list(items.size());
  std::transform(items.begin(), items.end(), list.begin(), [](const Item& item) { return item.entry; });
  return list;
}

}  // namespace rapt::cuda
