// What the warps of the rows kernel share: its parameters, its shared memory, and the messages in it.
//
// A block has three warpgroups. Two consume: each owns 64 rows of a tile. The third produces: one warp loads q, k and
// v, one hands out tiles, and two check v in steps where some keys are hidden.
#pragma once

#include <cstdint>

#include "cuda/pipeline.cuh"
#include "cuda/rows_arguments.h"
#include "cuda/wgmma.cuh"

namespace rapt::cuda {

inline constexpr int kRowsThreads = 384;
inline constexpr int kTileSlots = 4;
inline constexpr int kConsumerWarps = 8;
inline constexpr int kCheckWarps = 2;

// Sizes that follow from the kernel's head size.
template <int kSize_, bool kGeneral_>
struct RowsShape {
  static constexpr int kSize = kSize_;
  static constexpr bool kGeneral = kGeneral_;
  static constexpr int kKeys = step_keys(kSize, kGeneral);
  static constexpr int kPanels = kSize / 64;
  static constexpr int kStages = kSize * kKeys > 64 * 128 ? 2 : 4;
  static constexpr bool kTotalsInShared = kSize <= 128;
  static constexpr int kTotals = kTotalsInShared ? kTileRows * kSize / 4 : 1;  // float4
};

// The role of a step of keys in its tile.
struct StepFlags {
  static constexpr std::uint32_t kMasked = 1;       // some keys are hidden from some rows
  static constexpr std::uint32_t kBeginsChunk = 2;  // begins a chunk or a tile
  static constexpr std::uint32_t kBeginsTile = 4;
  static constexpr std::uint32_t kEndsTile = 8;
  static constexpr std::uint32_t kEnd = 16;  // no step: all tiles are done; it also has kBeginsTile

  std::uint32_t bits;

  RAPT_DEVICE bool masked() const { return (bits & kMasked) != 0; }
  RAPT_DEVICE bool begins_chunk() const { return (bits & kBeginsChunk) != 0; }
  RAPT_DEVICE bool begins_tile() const { return (bits & kBeginsTile) != 0; }
  RAPT_DEVICE bool ends_tile() const { return (bits & kEndsTile) != 0; }
  RAPT_DEVICE bool end() const { return (bits & kEnd) != 0; }
};

// A step, as announced with its stage of k by the warp that loads k. It includes the flags of the next step, so that
// consumers need not wait for the next stage to know them.
struct Step {
  std::int32_t first_key;
  StepFlags next, flags;
};

template <class Shape>
struct RowsShared {
  static constexpr int kTileElements = Shape::kKeys * Shape::kSize;

  std::uint16_t query[2][kGroupRows * Shape::kSize];  // one half for each consumer
  std::uint16_t key[Shape::kStages][kTileElements];
  std::uint16_t value[Shape::kStages][kTileElements];
  float4 totals[Shape::kTotals];

  Tile tiles[kTileSlots];
  std::int32_t has_tile[kTileSlots];
  Step steps[Shape::kStages];                 // of the stages of k
  StepFlags value_flags[Shape::kStages];      // of the stages of v
  std::int32_t value_keys[Shape::kStages];    // their first keys
  std::uint32_t bad_keys[Shape::kStages][4];  // a bit for each key whose v is not finite; masked steps only

  Ring<kTileSlots> tile;
  Ring<Shape::kStages> k, v;
  Barrier value_loaded[Shape::kStages];  // a stage's value_flags are set and, if masked, its v is loaded
  Barrier query_full[2], query_empty[2];
};

}  // namespace rapt::cuda
