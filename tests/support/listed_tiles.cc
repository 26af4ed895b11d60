#include "support/listed_tiles.h"

#include <algorithm>

namespace rapt::test {

bool is_general(const cuda::Arguments& call) {
  return call.mask_count > 0 || call.has_alibi || call.softcap != 0.0F || call.dropout.on || call.scale <= 0.0F;
}

std::vector<cuda::TileEntry> listed_tiles(const cuda::Arguments& call, const cuda::RowsPlan& plan) {
  std::vector<cuda::TileEntry> list;
  if (!plan.listed) return list;
  for (std::int32_t n = 0; n < call.sequence_count; ++n) {
    for (std::int32_t part = 0; part << plan.query_shift < call.sequence(n).query_count; ++part)
      list.push_back({n, part});
  }
  const auto steps = [&](const cuda::TileEntry& entry) {
    return cuda::make_tile(call, plan, call.sequence(entry.sequence), 0, entry.part).steps.count();
  };
  std::stable_sort(list.begin(), list.end(), [&](const auto& a, const auto& b) { return steps(a) > steps(b); });
  return list;
}

std::vector<cuda::Tile> tiles_of(const cuda::Arguments& call, const cuda::RowsPlan& plan) {
  const std::vector<cuda::TileEntry> list = listed_tiles(call, plan);
  const std::int32_t per_column = plan.listed ? static_cast<std::int32_t>(list.size()) : plan.tiles_per_column;
  std::vector<cuda::Tile> tiles;
  for (std::int32_t number = 0; number < plan.columns * per_column; ++number) {
    const cuda::TilePlace place = cuda::place_of(plan, per_column, number);
    if (plan.listed) {
      const cuda::TileEntry entry = list[static_cast<std::size_t>(place.rank)];
      tiles.push_back(cuda::make_tile(call, plan, call.sequence(entry.sequence), place.column, entry.part));
    } else {
      const std::int32_t columns = plan.columns_per_sequence(call), sequence = place.column / columns;
      tiles.push_back(cuda::make_tile(call, plan, call.sequence(sequence), place.column - sequence * columns,
                                      per_column - 1 - place.rank));
    }
  }
  return tiles;
}

}  // namespace rapt::test
