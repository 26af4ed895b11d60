#include "cuda/rows_plan.h"

#include <algorithm>

namespace rapt::cuda {

namespace {

// Keys and values of a section: larger than the L2 cache (50 MB), because tiles of a section read the same part of it at
// a time; smaller for short sequences, whose tiles differ more in length.
constexpr std::int64_t kLongSection = 64 << 20, kShortSection = 32 << 20;
constexpr std::int32_t kLongKeys = 2048;

bool all_alike(const Arguments& call) {
  if (call.sequence_count == 1) return true;
  if (call.lists.in_workspace != nullptr) return false;
  const Sequence& first = call.sequence(0);
  for (std::int32_t n = 1; n < call.sequence_count; ++n) {
    const Sequence& other = call.sequence(n);
    if (other.query_count != first.query_count || other.key_count != first.key_count || other.offset != first.offset) {
      return false;
    }
  }
  return true;
}

bool tiles_differ_in_length(const Arguments& call) {
  return call.right < call.keys || call.left < call.keys || call.first_keys > 0;
}

// 2^shift queries of a head in a tile. Where a group's queries do not fill a tile, several heads share it.
std::int32_t query_shift(const Arguments& call) {
  std::int32_t shift = 7;
  while (call.group > 1 && shift > 0 && call.queries <= (1 << (shift - 1)) && (kTileRows >> shift) < call.group) --shift;
  return shift;
}

}  // namespace

RowsPlan plan_rows(const Arguments& call, bool general) {
  RowsPlan plan;
  plan.step = step_keys(padded_head_size(call.head_size, call.value_size), general);
  plan.query_shift = query_shift(call);
  plan.column_heads = kTileRows >> plan.query_shift;
  plan.group_columns = (call.group + plan.column_heads - 1) / plan.column_heads;
  plan.listed = !all_alike(call);

  const std::int32_t columns = plan.columns_per_sequence(call);
  const std::int64_t bytes = std::int64_t{call.keys} * (call.head_size + call.value_size) * 2;  // of a kv head
  const std::int64_t budget = call.keys > kLongKeys ? kLongSection : kShortSection;
  std::int64_t section = std::max<std::int64_t>(1, budget / std::max<std::int64_t>(1, bytes)) * plan.group_columns;
  if (plan.listed) {
    plan.columns = columns;
    // The list holds the tiles of all sequences, so a column's keys are those of the whole batch.
    section = std::max<std::int64_t>(1, section / std::max(1, call.batch));
  } else {
    const std::int32_t queries = call.lists.in_workspace != nullptr ? call.queries : call.sequence(0).query_count;
    plan.columns = columns * call.sequence_count;
    plan.tiles_per_column = (queries + (1 << plan.query_shift) - 1) >> plan.query_shift;
    if (!tiles_differ_in_length(call)) section = 1;  // equal tiles: one column at a time
  }
  plan.section = static_cast<std::int32_t>(std::min<std::int64_t>(section, std::max(1, plan.columns)));
  return plan;
}

std::int64_t listed_tiles_bound(const Arguments& call, const RowsPlan& plan) {
  // Every sequence has at most one tile that is not full.
  return ((std::int64_t{call.batch} * call.queries) >> plan.query_shift) + call.sequence_count;
}

}  // namespace rapt::cuda
