// The kernels of one instruction set, as the engine calls them, and their arguments.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>

#include "core/arena.h"
#include "core/problem.h"
#include "core/product.h"
#include "cpu/layer/layer_kernels.h"

namespace rapt::cpu {

// Keys form chunks of this size, counted from the start of their sequence. Each chunk has its own softmax, and chunks
// are merged in ascending order. The chunk size is part of the arithmetic contract, because another one would change
// bits.
inline constexpr std::int64_t kChunk = 256;

// A row is one query of one head; the heads that share a kv head are processed together. Row r of a sequence and kv
// head is query r / group of head kv_head · group + r % group.
struct RowBlock {
  const SequenceSpan* sequence = nullptr;
  std::int64_t kv_head = 0;
  std::int64_t first_row = 0;
  std::int64_t row_count = 0;
};

// Places first … last − 1 in a list of chunks.
struct PlaceRange {
  std::int64_t first;
  std::int64_t last;

  std::int64_t count() const { return last - first; }
};

// Split-KV: some chunks of a block, computed separately from the others, because few rows with many keys would
// otherwise keep few workers busy. A partial is a row's state after one chunk alone. Partials are written to
// `partials`, (chunk, row, partial_floats), and `combine` merges them in order.
struct ChunkBlock {
  RowBlock rows;
  PlaceRange chunks{0, 0};  // places in the list of the block's chunks: chunks_of() in cpu/rows.h
  float* partials = nullptr;
};

// The largest number of tiles in a block. A tile has at most as many rows as the register tile is wide. Values are
// packed once per block, so a block should have several tiles.
inline constexpr std::int64_t kTilesPerBlock = 6;

// Each row's final maximum and sum, indexed by (b, h, query) of the tensors, for the passes that follow: captures in
// forward, gradients in backward.
struct RowSums {
  std::span<float> m, l;  // empty: not requested
  std::int64_t heads = 0, queries = 0;

  bool wanted() const { return !m.empty(); }
  std::size_t place(std::int64_t b, std::int64_t h, std::int64_t query) const {
    return static_cast<std::size_t>((b * heads + h) * queries + query);
  }
};

// Some queries of a sequence, all heads: a work item of the pass that writes weights and scores, and of attend_means.
struct QueryBlock {
  const SequenceSpan* sequence = nullptr;
  std::span<const std::int64_t> queries;  // within the sequence, ascending
};

// A part of a product: some rows of x times some panels of the packed matrix.
struct ProductBlock {
  std::int64_t first_row = 0, row_count = 0;
  std::int64_t first_panel = 0, panel_count = 0;
};

// ---------------------------------------------------------------- backward

// Consecutive queries of one head.
struct HeadRows {
  const SequenceSpan* sequence = nullptr;
  std::int64_t head = 0;
  std::int64_t first = 0;  // query within the sequence
  std::int64_t count = 0;
};

// The queries of one head in tiles of nearly equal width, in whole vectors except for the last.
struct HeadTiles {
  HeadTiles(std::int64_t query_count, std::int64_t rows_per_tile, std::int64_t lanes_of_vector)
      : queries(query_count), lanes(lanes_of_vector), vectors((queries + lanes - 1) / lanes) {
    const std::int64_t most = rows_per_tile / lanes;
    count = (vectors + most - 1) / most;
  }

  HeadRows operator()(const SequenceSpan& sequence, std::int64_t head, std::int64_t tile) const {
    const std::int64_t first = begin(tile);
    return {&sequence, head, first, std::min(begin(tile + 1), queries) - first};
  }

  std::int64_t queries, lanes, vectors;
  std::int64_t count = 0;

 private:
  std::int64_t begin(std::int64_t tile) const {
    return (tile * (vectors / count) + std::min(tile, vectors % count)) * lanes;
  }
};

// The data that the steps of backward share.
struct BackwardState {
  RowSums sums;            // of each row: m, and 1 / l instead of l
  std::span<float> delta;  // of each row, at sums.place(): Σ_j p_j g_j − dlse
  // dq in f32: the caller's tensor if dquery_in_place, otherwise rows in the workspace. The strides are those of b, h
  // and i.
  float* dquery = nullptr;
  std::int64_t dquery_strides[3] = {0, 0, 0};
  bool dquery_in_place = false;
  // For each tile of each head: the place, in the list of chunks that the tile visits, of the chunk whose part of dq is
  // added next.
  std::atomic<std::int64_t>* next_chunks = nullptr;
};

// Some chunks of keys of one kv head: the work item of backward.
struct KeyBlock {
  const SequenceSpan* sequence = nullptr;
  std::int64_t kv_head = 0;
  KeyRange chunks{0, 0};        // chunk indices; chunk n begins at key n · kChunk
  std::int64_t first_tile = 0;  // the first tile of the heads that share this kv head
};

// A part of a mask's gradient, and everything that is summed into it.
struct MaskBlock {
  std::size_t gradient = 0;                 // of problem.gradients.dmasks
  std::span<const SequenceSpan> sequences;  // ascending
  std::int64_t first_head = 0, head_count = 0;
  std::int64_t first_query = 0, query_count = 0;  // of each sequence: at most a tile, or all if broadcast
  KeyRange chunks{0, 0};                          // of each sequence: all, or one if only queries are broadcast
};

class PendingDq;  // cpu/backward/ordered_dq.h

struct BackwardKernels {
  // Bytes that one worker needs for blocks of up to `chunks` chunks.
  std::size_t (*scratch_bytes)(const BackwardProblem& problem, std::int64_t chunks) = nullptr;
  // The steps, each for one item, in this order: compute the statistics of each row of a tile; compute dk and dv of a
  // block of keys, and its parts of dq; store dq in its tensor; compute a part of the gradient of a mask.
  void (*prepare)(const BackwardProblem& problem, const HeadRows& rows, std::int64_t tile, const BackwardState& state,
                  std::span<std::byte> scratch) = nullptr;
  void (*differentiate)(const BackwardProblem& problem, const KeyBlock& block, const BackwardState& state,
                        PendingDq& pending, std::span<std::byte> scratch) = nullptr;
  void (*store_queries)(const BackwardProblem& problem, const HeadRows& rows, const BackwardState& state) = nullptr;
  void (*differentiate_mask)(const BackwardProblem& problem, const MaskBlock& block, const BackwardState& state,
                             std::span<std::byte> scratch) = nullptr;
};

struct Kernels {
  std::int64_t rows_per_tile = 0;  // also the width of a full panel of a packed matrix
  std::int64_t lanes = 0;          // vector length; the width of the last panel is a multiple of it
  // Bytes that one worker needs for blocks of up to `rows` rows.
  std::size_t (*scratch_bytes)(const ForwardProblem& problem, std::int64_t rows) = nullptr;
  // Attention for one block: reads q, k, v and masks, writes out, lse and, if requested, sums.
  void (*attend)(const ForwardProblem& problem, const RowBlock& block, const RowSums& sums,
                 std::span<std::byte> scratch) = nullptr;
  // Attention in two steps, for a split block: combine merges what attend_chunks wrote for all chunks.
  std::int64_t (*partial_floats)(std::int64_t value_size) = nullptr;
  void (*attend_chunks)(const ForwardProblem& problem, const ChunkBlock& block, std::span<std::byte> scratch) = nullptr;
  void (*combine)(const ForwardProblem& problem, const ChunkBlock& block, const RowSums& sums,
                  std::span<std::byte> scratch) = nullptr;
  // Attention for some queries, up to kTilesPerBlock tiles of them, with the one capture of the problem: a mean over
  // heads of weights without dropout. The bytes that one worker needs grow with the tiles and with Lk.
  std::size_t (*means_scratch_bytes)(const ForwardProblem& problem, std::int64_t queries) = nullptr;
  void (*attend_means)(const ForwardProblem& problem, const QueryBlock& block, std::span<std::byte> scratch) = nullptr;
  // Writes the captures of these queries, at most one tile, from recomputed scores and the sums that attend or combine
  // stored.
  std::size_t (*capture_scratch_bytes)(const ForwardProblem& problem) = nullptr;
  void (*capture)(const ForwardProblem& problem, const QueryBlock& block, const RowSums& sums,
                  std::span<std::byte> scratch) = nullptr;
  // The product of one block, and the bytes that one worker needs for it.
  std::size_t (*product_scratch_bytes)(const ProductProblem& problem, const ProductBlock& block) = nullptr;
  void (*multiply)(const ProductProblem& problem, const ProductBlock& block, std::span<std::byte> scratch) = nullptr;
  BackwardKernels backward{};
};

// One instruction set that the kernels were compiled for.
struct InstructionSet {
  const char* name;
  bool (*runs_here)();
  const Kernels& (*kernels)();
  const LayerKernels& (*layer)();
};

// All compiled instruction sets, best first; the last one runs on every machine that the compiler's baseline covers.
std::span<const InstructionSet> instruction_sets();

// The instruction set in use: the best one available, or the one that RAPT_ISA or use_instruction_set() names.
const InstructionSet& chosen_instruction_set();

}  // namespace rapt::cpu
