// What the warps of the rows kernel share: its sizes, its shared memory, and the messages in shared memory.
//
// A block has three warpgroups. Two are consumers, each of which computes 64 rows of every tile. The third is the
// producer: one of its warps loads q, k and v, one hands out tiles, and two check v in masked steps.
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
  static constexpr std::uint32_t kMasked = 1;       // keys may be hidden from some rows
  static constexpr std::uint32_t kBeginsChunk = 2;  // begins a chunk or a tile
  static constexpr std::uint32_t kBeginsTile = 4;
  static constexpr std::uint32_t kEndsTile = 8;
  static constexpr std::uint32_t kEnd = 16;  // no step: all tiles are done; has kBeginsTile and kBeginsChunk too

  std::uint32_t bits;

  RAPT_DEVICE bool masked() const { return (bits & kMasked) != 0; }
  RAPT_DEVICE bool begins_chunk() const { return (bits & kBeginsChunk) != 0; }
  RAPT_DEVICE bool begins_tile() const { return (bits & kBeginsTile) != 0; }
  RAPT_DEVICE bool ends_tile() const { return (bits & kEndsTile) != 0; }
  RAPT_DEVICE bool end() const { return (bits & kEnd) != 0; }
};

// A step. The warp that loads k announces it together with its stage of k. The flags of the next step are included, so
// that consumers know them without waiting for the next stage.
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
  Step steps[Shape::kStages];                 // the step in each stage of k
  StepFlags value_flags[Shape::kStages];      // the flags of the step in each stage of v
  std::int32_t value_keys[Shape::kStages];    // the first key of that step
  std::uint32_t bad_keys[Shape::kStages][4];  // a bit for each key whose v is not finite; masked steps only

  Ring<kTileSlots> tile;
  Ring<Shape::kStages> k, v;
  Barrier value_loaded[Shape::kStages];  // the flags of v's stage are set and, if masked, its v is loaded
  Barrier query_full[2], query_empty[2];
};

}  // namespace rapt::cuda
