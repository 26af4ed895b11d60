// The producing warps of the rows kernel: tiles and q; k and v; and the look through v.
#pragma once

#include "cuda/rows_shared.cuh"

namespace rapt::cuda {

RAPT_DEVICE Tile tile_number(const RowsArguments& a, std::int32_t number) {
  const TilePlace place = place_of(a.plan, number);
  if (a.plan.listed) {
    const TileEntry entry = a.list[place.rank];
    return make_tile(a.call, a.plan, a.call.sequence(entry.sequence), place.column, entry.part);
  }
  // Later queries see more keys under a causal mask: the last part is the longest.
  const std::int32_t columns = a.plan.columns_per_sequence(a.call), sequence = place.column / columns;
  return make_tile(a.call, a.plan, a.call.sequence(sequence), place.column - sequence * columns,
                   a.plan.tiles_per_column - 1 - place.rank);
}

// One thread: hands out tiles by a counter in device memory, and brings the q of each.
template <class Shape>
RAPT_DEVICE void produce_tiles(const RowsArguments& a, RowsShared<Shape>& shared) {
  const std::int32_t tiles = a.plan.columns * a.plan.tiles_per_column;
  const std::int32_t group_heads = a.plan.query_shift < 7 ? kGroupRows >> a.plan.query_shift : 0;
  const std::int32_t group_queries = a.plan.query_shift < 7 ? 0 : kGroupRows;
  Cursor<kTileSlots> slot;
  std::uint32_t round = 0;  // of q
  std::int32_t number = static_cast<std::int32_t>(blockIdx.x);
  for (;;) {
    shared.tile.wait_empty(slot);
    const bool exists = number < tiles;
    shared.has_tile[slot.stage] = exists ? 1 : 0;
    if (!exists) {
      shared.tile.full[slot.stage].arrive();
      return;
    }
    Tile& tile = shared.tiles[slot.stage];
    tile = tile_number(a, number);
    shared.tile.full[slot.stage].arrive();
    number = static_cast<std::int32_t>(gridDim.x) + atomicAdd(a.next_tile, 1);
    const std::int32_t query_row = tile.query_row(), head = tile.head, batch = tile.sequence.batch;
    for (int group = 0; group < 2; ++group) {
      shared.query_empty[group].wait(round ^ 1);
      shared.query_full[group].arrive_and_expect(kGroupRows * Shape::kSize * 2);
      for (int panel = 0; panel < Shape::kPanels; ++panel) {
        copy_box(shared.query[group] + panel * kGroupRows * 64, a.query, shared.query_full[group], panel * 64,
                 query_row + group * group_queries, head + group * group_heads, batch);
      }
    }
    slot.advance();
    round ^= 1;
  }
}

// Where the k and v of a step lie in their tensors.
struct StepPlace {
  std::int32_t row, head, batch;
  std::uint32_t flags;
};

template <class Shape>
RAPT_DEVICE void bring_value(const RowsArguments& a, RowsShared<Shape>& shared, Cursor<Shape::kStages>& v,
                             const StepPlace& place) {
  shared.v.wait_empty(v);
  // A masked step's v goes through the check; of others only the flags do.
  const bool masked = (place.flags & Step::kMasked) != 0;
  Barrier& loaded = shared.value_loaded[v.stage];
  Barrier& full = shared.v.full[v.stage];
  shared.value_flags[v.stage] = place.flags;
  if (masked) {
    loaded.arrive_and_expect(RowsShared<Shape>::kTileElements * 2);
  } else {
    loaded.arrive();
    full.arrive();  // in place of the second checking warp
    full.arrive_and_expect(RowsShared<Shape>::kTileElements * 2);
  }
  for (int panel = 0; panel < Shape::kPanels; ++panel) {
    copy_box(shared.value[v.stage] + panel * Shape::kKeys * 64, a.value, masked ? loaded : full, panel * 64, place.row,
             place.head, place.batch);
  }
  v.advance();
}

// One thread: brings k of each step, and announces it; v comes one step later, when it is needed.
template <class Shape>
RAPT_DEVICE void produce_steps(const RowsArguments& a, RowsShared<Shape>& shared) {
  constexpr std::int32_t kChunkSteps = kChunkKeys / Shape::kKeys;
  Cursor<kTileSlots> slot;
  Cursor<Shape::kStages> k, v;
  StepPlace before{};
  bool has_before = false;
  for (;; slot.advance()) {
    shared.tile.wait_full(slot);
    if (shared.has_tile[slot.stage] == 0) break;
    const Tile& tile = shared.tiles[slot.stage];
    std::int32_t chunk = -1;
    bool last = false;
    for (std::int32_t step = tile.steps.first(); !last; step = tile.steps.next(step)) {
      last = tile.steps.is_last(step);
      std::uint32_t flags = tile.steps.is_full(step) ? 0 : Step::kMasked;
      if (chunk < 0) flags |= Step::kBeginsTile;
      if (step / kChunkSteps != chunk) flags |= Step::kBeginsChunk;
      if (last) flags |= Step::kEndsTile;
      chunk = step / kChunkSteps;

      shared.k.wait_empty(k);
      shared.steps[k.stage] = Step{step * Shape::kKeys, flags};
      Barrier& full = shared.k.full[k.stage];
      full.arrive_and_expect(RowsShared<Shape>::kTileElements * 2);
      const StepPlace place{tile.sequence.key_begin + step * Shape::kKeys, tile.kv_head,
                            tile.sequence.batch, flags};
      for (int panel = 0; panel < Shape::kPanels; ++panel) {
        copy_box(shared.key[k.stage] + panel * Shape::kKeys * 64, a.key, full, panel * 64, place.row, place.head,
                 place.batch);
      }
      k.advance();
      if (has_before) bring_value(a, shared, v, before);
      before = place;
      has_before = true;
    }
    shared.tile.empty[slot.stage].arrive();
  }
  if (has_before) bring_value(a, shared, v, before);
  // The end, for consumers and for the check.
  shared.k.wait_empty(k);
  shared.steps[k.stage] = Step{0, Step::kEnd | Step::kBeginsTile | Step::kBeginsChunk};
  shared.k.full[k.stage].arrive();
  shared.v.wait_empty(v);
  shared.value_flags[v.stage] = Step::kEnd;
  shared.value_loaded[v.stage].arrive();
}

// Whether some number of four pairs is not finite; `largest` collects magnitudes.
RAPT_DEVICE std::uint32_t largest_magnitude(std::uint32_t largest, const uint4& x) {
  constexpr std::uint32_t kMagnitude = 0x7FFF7FFF;
  largest = max_pair(max_pair(largest, x.x & kMagnitude), x.y & kMagnitude);
  return max_pair(max_pair(largest, x.z & kMagnitude), x.w & kMagnitude);
}
template <class Type>
RAPT_DEVICE bool is_finite(std::uint32_t magnitudes) {
  return (magnitudes & 0xFFFF) < Type::kInfinity && (magnitudes >> 16) < Type::kInfinity;
}

// Two warps, each half of the keys. A hidden key has p = 0, but 0 · inf is NaN: in steps with hidden keys every v that
// is not finite becomes 0, and its key is marked. Rows that do see such a key add it themselves (restore_marked_values).
template <class Type, class Shape>
RAPT_DEVICE void check_values(RowsShared<Shape>& shared, int warp, int lane) {
  constexpr int kHalf = Shape::kKeys / 2;  // keys of a warp; 8 lanes read the 128 bytes of a key in a panel
  constexpr int kReads = kHalf / 4;        // of a lane in a panel
  Cursor<Shape::kStages> v;
  for (;; v.advance()) {
    shared.value_loaded[v.stage].wait(v.round);
    const std::uint32_t flags = shared.value_flags[v.stage];
    if ((flags & Step::kEnd) != 0) return;
    if ((flags & Step::kMasked) != 0) {
      uint4* mine = reinterpret_cast<uint4*>(shared.value[v.stage]) + warp * kHalf * 8 + lane;
      std::uint32_t largest = 0;
      for (int panel = 0; panel < Shape::kPanels; ++panel) {
#pragma unroll 4
        for (int i = 0; i < kReads; ++i) largest = largest_magnitude(largest, mine[panel * Shape::kKeys * 8 + i * 32]);
      }
      constexpr int kWords = kHalf / 32;
      std::uint32_t marks[2] = {0, 0};
      if (any_lane(!is_finite<Type>(largest))) {
        for (int panel = 0; panel < Shape::kPanels; ++panel) {
#pragma unroll 1
          for (int i = 0; i < kReads; ++i) {
            uint4& x = mine[panel * Shape::kKeys * 8 + i * 32];
            uint4 y = x;
            std::uint32_t* word = &y.x;
            bool bad = false;
#pragma unroll
            for (int w = 0; w < 4; ++w) {
              if ((word[w] & 0x7FFF) >= Type::kInfinity) word[w] &= 0xFFFF0000, bad = true;
              if ((word[w] >> 16 & 0x7FFF) >= Type::kInfinity) word[w] &= 0xFFFF, bad = true;
            }
            if (bad) x = y;
            const std::uint32_t lanes = __ballot_sync(~0U, static_cast<int>(bad));
            for (int key = 0; key < 4; ++key) {
              if ((lanes >> (8 * key) & 0xFF) != 0) {
                const std::uint32_t bit = 1U << ((4 * i + key) % 32);
                if (4 * i < 32) {
                  marks[0] |= bit;
                } else {
                  marks[1] |= bit;
                }
              }
            }
          }
        }
        fence_async_proxy();
      }
      if (lane == 0) {
        shared.bad_keys[v.stage][warp * kWords] = marks[0];
        if (kWords == 2) shared.bad_keys[v.stage][warp * kWords + 1] = marks[1];
      }
      __syncwarp();
      if (lane == 0) shared.v.full[v.stage].arrive();
    }
    __syncwarp();
    if (lane == 0) shared.v.empty[v.stage].arrive();
  }
}

}  // namespace rapt::cuda
