// The producer warps of the rows kernel: one loads q, k and v, one hands out tiles, and two check v.
#pragma once

#include "cuda/rows_shared.cuh"

namespace rapt::cuda {

RAPT_DEVICE Tile tile_number(const RowsArguments& a, std::int32_t number) {
  const TilePlace place = place_of(a.plan, number);
  if (a.plan.listed) {
    const TileEntry entry = a.list[place.rank];
    return make_tile(a.call, a.plan, a.call.sequence(entry.sequence), place.column, entry.part);
  }
  // Under a causal mask, later queries see more keys, so the last part is handed out first.
  const std::int32_t columns = a.plan.columns_per_sequence(a.call), sequence = place.column / columns;
  return make_tile(a.call, a.plan, a.call.sequence(sequence), place.column - sequence * columns,
                   a.plan.tiles_per_column - 1 - place.rank);
}

// Runs in one thread: hands out tiles, whose numbers come from a counter in device memory.
template <class Shape>
RAPT_DEVICE void produce_tiles(const RowsArguments& a, RowsShared<Shape>& shared) {
  const std::int32_t tiles = a.plan.columns * a.plan.tiles_per_column;
  std::int32_t number = static_cast<std::int32_t>(blockIdx.x);
  for (Cursor<kTileSlots> slot;; slot.advance()) {
    const bool exists = number < tiles;
    Tile tile;
    if (exists) tile = tile_number(a, number);
    shared.tile.wait_empty(slot);
    if (exists) shared.tiles[slot.stage] = tile;
    shared.has_tile[slot.stage] = exists ? 1 : 0;
    shared.tile.full[slot.stage].arrive();
    if (!exists) return;
    number = static_cast<std::int32_t>(gridDim.x) + atomicAdd(a.next_tile, 1);
  }
}

// The location of a step's k and v, and of its tile's q, in their tensors.
struct StepPlace {
  std::int32_t first_key, row, head, batch;
  std::int32_t query_row, query_head;  // the first of its tile
  StepFlags flags;
};

// The q of a tile is loaded, or prefetched, in two halves, one for each consumer. The second half begins 64 queries
// after the first or, in a tile of several heads, as many heads after the first as fill 64 rows.
RAPT_DEVICE std::int32_t second_half_queries(const RowsPlan& plan) { return plan.query_shift == 7 ? kGroupRows : 0; }
RAPT_DEVICE std::int32_t second_half_heads(const RowsPlan& plan) {
  return plan.query_shift == 7 ? 0 : kGroupRows >> plan.query_shift;
}

template <class Shape>
RAPT_DEVICE void prefetch_query(const RowsArguments& a, const StepPlace& place) {
  const std::int32_t queries = second_half_queries(a.plan), heads = second_half_heads(a.plan);
  for (int i = 0; i < 2 * Shape::kPanels; ++i) {
    prefetch_box(a.query, i / 2 * 64, place.query_row + i % 2 * queries, place.query_head + i % 2 * heads, place.batch);
  }
}

template <class Shape>
RAPT_DEVICE void bring_query(const RowsArguments& a, RowsShared<Shape>& shared, const StepPlace& place,
                             std::uint32_t round) {
  const std::int32_t queries = second_half_queries(a.plan), heads = second_half_heads(a.plan);
  for (int group = 0; group < 2; ++group) {
    shared.query_empty[group].wait(round ^ 1);
    shared.query_full[group].arrive_and_expect(kGroupRows * Shape::kSize * 2);
    for (int panel = 0; panel < Shape::kPanels; ++panel) {
      copy_box(shared.query[group] + panel * kGroupRows * 64, a.query, shared.query_full[group], panel * 64,
               place.query_row + group * queries, place.query_head + group * heads, place.batch);
    }
  }
}

// The steps of all tiles of the block, one after another.
template <class Shape>
class StepSequence {
 public:
  RAPT_DEVICE StepSequence(const RowsArguments& a, RowsShared<Shape>& shared) : a_(a), shared_(shared) {}

  RAPT_DEVICE StepPlace next() {
    constexpr std::int32_t kChunkSteps = kChunkKeys / Shape::kKeys;
    std::uint32_t flags = 0;
    if (step_ < 0) {
      shared_.tile.wait_full(slot_);
      if (shared_.has_tile[slot_.stage] == 0) {
        return {0, 0, 0, 0, 0, 0, {StepFlags::kEnd | StepFlags::kBeginsTile | StepFlags::kBeginsChunk}};
      }
      flags = StepFlags::kBeginsTile;
      chunk_ = -1;
      step_ = shared_.tiles[slot_.stage].steps.first();
    }
    const Tile& tile = shared_.tiles[slot_.stage];
    const std::int32_t step = step_, first_key = step * Shape::kKeys;
    if (!tile.steps.is_full(step) || (Shape::kGeneral && a_.masks_hide)) flags |= StepFlags::kMasked;
    if (step / kChunkSteps != chunk_) flags |= StepFlags::kBeginsChunk;
    chunk_ = step / kChunkSteps;
    StepPlace place{
        first_key, tile.sequence.key_begin + first_key, tile.kv_head, tile.sequence.batch, tile.query_row(), tile.head,
        {flags}};
    step_ = tile.steps.next(step);
    if (step_ >= tile.steps.end) {
      place.flags.bits |= StepFlags::kEndsTile;
      step_ = -1;
      shared_.tile.empty[slot_.stage].arrive();
      slot_.advance();
    }
    return place;
  }

 private:
  const RowsArguments& a_;
  RowsShared<Shape>& shared_;
  Cursor<kTileSlots> slot_;
  std::int32_t step_ = -1, chunk_ = -1;  // step_ −1: the next step begins a tile
};

template <class Shape>
RAPT_DEVICE void bring_value(const RowsArguments& a, RowsShared<Shape>& shared, Cursor<Shape::kStages>& v,
                             const StepPlace& place) {
  shared.v.wait_empty(v);
  // The v of a masked step is checked before its stage counts as full.
  Barrier& announced = shared.value_loaded[v.stage];
  Barrier& loaded = place.flags.masked() ? announced : shared.v.full[v.stage];
  shared.value_flags[v.stage] = place.flags;
  shared.value_keys[v.stage] = place.first_key;
  loaded.arrive_and_expect(RowsShared<Shape>::kTileElements * 2);
  if (!place.flags.masked()) {
    announced.arrive();
    loaded.arrive();  // `full` expects two arrivals, as from the two warps that check v
  }
  for (int panel = 0; panel < Shape::kPanels; ++panel) {
    copy_box(shared.value[v.stage] + panel * Shape::kKeys * 64, a.value, loaded, panel * 64, place.row, place.head,
             place.batch);
  }
  v.advance();
}

// Runs in one thread: loads k of each step and announces the step; v is loaded one step later, when it is needed. The q
// of a tile is loaded after its first k, because its memory is free only after the last scores of the previous tile.
template <class Shape>
RAPT_DEVICE void produce_steps(const RowsArguments& a, RowsShared<Shape>& shared) {
  StepSequence<Shape> steps(a, shared);
  Cursor<Shape::kStages> k, v;
  std::uint32_t query_round = 0;
  StepPlace before{}, now = steps.next();
  for (bool first = true;; first = false) {
    const bool end = now.flags.end();
    const StepPlace next = end ? now : steps.next();
    shared.k.wait_empty(k);
    shared.steps[k.stage] = {now.first_key, next.flags, now.flags};
    Barrier& full = shared.k.full[k.stage];
    if (end) {
      full.arrive();
    } else {
      full.arrive_and_expect(RowsShared<Shape>::kTileElements * 2);
      for (int panel = 0; panel < Shape::kPanels; ++panel) {
        copy_box(shared.key[k.stage] + panel * Shape::kKeys * 64, a.key, full, panel * 64, now.row, now.head,
                 now.batch);
      }
    }
    k.advance();
    if (!first) bring_value(a, shared, v, before);
    if (end) break;
    if (now.flags.begins_tile()) {
      bring_query(a, shared, now, query_round);
      query_round ^= 1;
    }
    if (next.flags.begins_tile() && !next.flags.end()) prefetch_query<Shape>(a, next);
    before = now;
    now = next;
  }
  // Announces the end to the warps that check v.
  shared.v.wait_empty(v);
  shared.value_flags[v.stage] = now.flags;
  shared.value_loaded[v.stage].arrive();
}

// Two functions that find numbers that are not finite: largest_magnitude collects the largest magnitude of the lower
// and of the upper numbers of all pairs, and is_finite tests the result.
RAPT_DEVICE std::uint32_t largest_magnitude(std::uint32_t largest, const uint4& x) {
  constexpr std::uint32_t kMagnitude = 0x7FFF7FFF;
  largest = max_pair(max_pair(largest, x.x & kMagnitude), x.y & kMagnitude);
  return max_pair(max_pair(largest, x.z & kMagnitude), x.w & kMagnitude);
}
template <class Type>
RAPT_DEVICE bool is_finite(std::uint32_t magnitudes) {
  return (magnitudes & 0xFFFF) < Type::kInfinity && (magnitudes >> 16) < Type::kInfinity;
}

// A pair with 0 in place of numbers that are not finite.
template <class Type>
RAPT_DEVICE std::uint32_t only_finite(std::uint32_t pair) {
  const std::uint32_t low = (pair & 0x7FFF) < Type::kInfinity ? pair & 0xFFFF : 0;
  return low | ((pair >> 16 & 0x7FFF) < Type::kInfinity ? pair & 0xFFFF0000 : 0);
}

// Runs in two warps, each of which checks half of the keys of a step. A hidden key has p = 0, but 0 · inf is NaN. So in
// masked steps every number of v that is not finite is set to 0, and its key is marked; restore_marked_values adds the
// product with the original number in the rows that see the key.
template <class Type, class Shape>
RAPT_DEVICE void check_values(RowsShared<Shape>& shared, int warp, int lane) {
  constexpr int kHalf = Shape::kKeys / kCheckWarps;  // keys of a warp; 8 lanes read 128 bytes of a key
  constexpr int kReads = kHalf / 4;                  // of a lane in a panel
  for (Cursor<Shape::kStages> v;; v.advance()) {
    shared.value_loaded[v.stage].wait(v.round);
    const StepFlags flags = shared.value_flags[v.stage];
    if (flags.end()) return;
    if (flags.masked()) {
      uint4* const tile = reinterpret_cast<uint4*>(shared.value[v.stage]) + warp * kHalf * 8 + lane;
      std::uint32_t* const marks = shared.bad_keys[v.stage] + warp * kHalf / 32;
      if (lane < kHalf / 32) marks[lane] = 0;
      std::uint32_t largest = 0;
      for (int panel = 0; panel < Shape::kPanels; ++panel) {
#pragma unroll 4
        for (int i = 0; i < kReads; ++i) largest = largest_magnitude(largest, tile[panel * Shape::kKeys * 8 + i * 32]);
      }
      __syncwarp();
      if (any_lane(!is_finite<Type>(largest))) {
#pragma unroll 1
        for (int i = 0; i < kReads * Shape::kPanels; ++i) {
          uint4& place = tile[i / kReads * Shape::kKeys * 8 + i % kReads * 32];
          const uint4 x = place;
          const uint4 finite = {only_finite<Type>(x.x), only_finite<Type>(x.y), only_finite<Type>(x.z),
                                only_finite<Type>(x.w)};
          place = finite;
          const bool bad = finite.x != x.x || finite.y != x.y || finite.z != x.z || finite.w != x.w;
          const std::uint32_t lanes = __ballot_sync(~0U, static_cast<int>(bad));
          std::uint32_t keys = 0;
          for (int key = 0; key < 4; ++key) keys |= (lanes >> (8 * key) & 0xFF) != 0 ? 1U << key : 0;
          const int first_key = i % kReads * 4;
          if (lane == 0) marks[first_key / 32] |= keys << (first_key % 32);
        }
        fence_async_proxy();
      }
      __syncwarp();
      if (lane == 0) shared.v.full[v.stage].arrive();
    }
    __syncwarp();
    if (lane == 0) shared.v.empty[v.stage].arrive();
  }
}

}  // namespace rapt::cuda
