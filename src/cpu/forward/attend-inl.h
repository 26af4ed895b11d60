// Attention for one block of rows: the whole algorithm.
#if defined(RAPT_CPU_ATTEND_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef RAPT_CPU_ATTEND_INL_H
#undef RAPT_CPU_ATTEND_INL_H
#else
#define RAPT_CPU_ATTEND_INL_H
#endif

#include <limits>

#include "cpu/decode/attend_decode-inl.h"

HWY_BEFORE_NAMESPACE();
namespace rapt::cpu::HWY_NAMESPACE {

// Packs values [range) of a chunk: one (kChunk, kMR) panel for each group of kMR columns.
inline void PackValues(const ForwardProblem& problem, const RowBlock& block, KeyRange range, const Scratch& scratch) {
  const KvRows rows = KvRows::values(problem, *block.sequence, block.kv_head);
  const std::int64_t size = problem.value_size;
  const bool in_place = reads_in_place(problem.value);
  const hn::CappedTag<float, kMR> group;
  const auto step = static_cast<std::int64_t>(hn::Lanes(group));
  for (std::int64_t j = range.first; j < range.last; ++j) {
    const float* row = scratch.rows_in.data();
    if (in_place) {
      row = static_cast<const float*>(problem.value.data()) + rows.offset(j);
    } else {
      LoadRow(rows, j, size, scratch.rows_in.data());
    }
    float* to = scratch.values.data() + (j - range.first) * kMR;
    std::int64_t d = 0;
    for (; d + kMR <= size; d += kMR, to += kPanel) {
      for (std::int64_t n = 0; n < kMR; n += step) hn::StoreU(hn::LoadU(group, row + d + n), group, to + n);
    }
    for (; d < scratch.padded_value_size; ++d) *to++ = d < size ? row[d] : 0.0F;
  }
}

// Values [range) of a chunk for WeightedSum. They are packed so that a panel is contiguous in L1, unless they are
// contiguous f32 and already fit in L1.
inline ValueRows LoadValues(const ForwardProblem& problem, const RowBlock& block, KeyRange range,
                            const Scratch& scratch) {
  constexpr std::int64_t kFits = std::int64_t{32} << 10;
  const ConstTensorView& view = problem.value;
  const std::int64_t size = problem.value_size;
  const std::int64_t count = range.last - range.first;
  if (reads_in_place(view) && view.stride(2) == size && size % kMR == 0 && count * size * 4 <= kFits) {
    const KvRows rows = KvRows::values(problem, *block.sequence, block.kv_head);
    if (rows.run(range.first, count) == count) {
      const float* first = static_cast<const float*>(view.data()) + rows.offset(range.first);
      // The values are prefetched here, row by row, because the product reads them in columns.
      for (std::int64_t n = 0; n < count * size; n += 16) hwy::Prefetch(first + n);
      return {first, size, kMR};
    }
  }
  PackValues(problem, block, range, scratch);
  return {scratch.values.data(), kMR, kPanel};
}

// A tile's weights for one chunk of keys, relative to the chunk's own maximum.
struct TileWeights {
  KeyRange keys{0, 0};   // visible to at least one row
  float* p = nullptr;    // (keys, kTileRows), with padding for kMR keys
  float* max = nullptr;  // (kTileRows)
};

// Processes one tile against one chunk of keys. The weights and maxima are written to weights.p and weights.max, and
// weights.keys is set.
template <int kV>
void AttendChunk(const ForwardProblem& problem, const TileRows& rows, KeyRange chunk, const float* q,
                 const KeyRows& key_rows, const ValueRows& values, const Scratch& scratch, TileWeights& weights,
                 const TileState& state) {
  const TileKeys keys = VisibleTileKeys(problem, rows, chunk);
  weights.keys = keys.range;
  if (keys.range.first >= keys.range.last) return;
  const std::int64_t count = keys.range.last - keys.range.first;
  HWY_ALIGN float sum[TileRows::kMax];

  MaskedScores(problem, rows, keys, q, key_rows, weights.p, weights.max);
  Weights<kV>(count, weights.max, weights.p, sum);
  if (problem.dropout.on) DropWeights(problem.dropout, rows, keys.range.first, count, weights.p);
  WeightedSum<kV>(
      weights.p, Stretches(rows, keys.range, kLanes),
      {values.data + (keys.range.first - chunk.first) * values.row_stride, values.row_stride, values.panel_stride},
      scratch.padded_value_size / kMR, weights.max, sum, state);
}

inline void AttendChunk(const ForwardProblem& problem, const TileRows& rows, KeyRange chunk, const float* q,
                        const KeyRows& key_rows, const ValueRows& values, const Scratch& scratch, TileWeights& weights,
                        const TileState& state) {
  WithVectors(rows.vectors, [&](auto count_of) {
    AttendChunk<count_of()>(problem, rows, chunk, q, key_rows, values, scratch, weights, state);
  });
}

// The tiles of a block.
struct Tiles {
  Tiles(const ForwardProblem& problem, const RowBlock& block, const Scratch& scratch)
      : Tiles(problem, block.row_count, scratch, [&](std::int64_t first, std::int64_t row_count) {
          return TileRows(problem, block, block.first_row + first, row_count, kLanes);
        }) {}
  // The tiles of some queries of one head.
  Tiles(const ForwardProblem& problem, const QueryBlock& block, std::int64_t head, const Scratch& scratch)
      : Tiles(problem, static_cast<std::int64_t>(block.queries.size()), scratch,
              [&](std::int64_t first, std::int64_t row_count) {
                const auto queries =
                    block.queries.subspan(static_cast<std::size_t>(first), static_cast<std::size_t>(row_count));
                return TileRows(problem, {block.sequence, queries}, head, kLanes);
              }) {}

  std::int64_t count = 0;
  TileRows rows[kTilesPerBlock];
  std::int64_t first_row[kTilesPerBlock];  // within the block
  SeenKeys any;                            // keys visible to at least one row

 private:
  // Makes tiles of similar width, because a last tile of one vector would leave FMA units idle.
  template <class RowsOf>
  Tiles(const ForwardProblem& problem, std::int64_t row_count, const Scratch& scratch, const RowsOf& rows_of) {
    const std::int64_t vectors = (row_count + kLanes - 1) / kLanes;
    count = (vectors + kNR - 1) / kNR;
    for (std::int64_t t = 0, first = 0; t < count; ++t) {
      const std::int64_t width = (vectors / count + (t < vectors % count ? 1 : 0)) * kLanes;
      first_row[t] = first;
      rows[t] = rows_of(first, std::min(width, row_count - first));
      first += rows[t].count;
      any.add(rows[t].any);
      LoadQueries(problem, rows[t], scratch.rows_in.data(), scratch.queries(t));
    }
  }
};

// Processes all tiles against one chunk of keys; weights_of(t) is the destination of the weights of tile t.
template <class WeightsOf>
void AttendTiles(const ForwardProblem& problem, const RowBlock& block, const Tiles& tiles, std::int64_t chunk,
                 const Scratch& scratch, const WeightsOf& weights_of) {
  const KeyRange range = tiles.any.within_chunk(chunk);
  if (range.first >= range.last) return;
  const KeyRows keys = LoadKeys(problem, *block.sequence, block.kv_head, range, scratch.keys.data());
  const ValueRows values = LoadValues(problem, block, range, scratch);
  for (std::int64_t t = 0; t < tiles.count; ++t) {
    AttendChunk(problem, tiles.rows[t], range, scratch.queries(t), keys, values, scratch, weights_of(t),
                scratch.state(t));
  }
}

// The same for weights that are not needed afterwards.
inline void AttendTiles(const ForwardProblem& problem, const RowBlock& block, const Tiles& tiles, std::int64_t chunk,
                        const Scratch& scratch) {
  HWY_ALIGN float max[TileRows::kMax];
  TileWeights weights{.p = scratch.s.data(), .max = max};
  AttendTiles(problem, block, tiles, chunk, scratch, [&](std::int64_t) -> TileWeights& { return weights; });
}

// The end of a block: sinks, division, and writing.
inline void StoreTiles(const ForwardProblem& problem, const Tiles& tiles, const Scratch& scratch, const RowSums& sums) {
  for (std::int64_t t = 0; t < tiles.count; ++t) {
    if (problem.sinks.defined()) AddSinks(problem, tiles.rows[t], scratch.state(t), scratch.padded_value_size);
    if (!StoreRows(problem, tiles.rows[t], scratch.state(t), scratch, sums)) {
      RepeatRows(problem, tiles.rows[t], t, scratch, sums);
    }
  }
}

inline void Attend(const ForwardProblem& problem, const RowBlock& block, const RowSums& sums,
                   std::span<std::byte> memory) {
  Arena arena(memory);
  const Scratch scratch(arena, problem, block.row_count);
  if (IsDecode(block)) return AttendDecode(problem, block, sums, scratch);

  const Tiles tiles(problem, block, scratch);
  for (std::int64_t t = 0; t < tiles.count; ++t) scratch.clear(t);
  const ChunkList chunks = tiles.any.chunks();
  for (std::int64_t n = 0; n < chunks.count(); ++n) AttendTiles(problem, block, tiles, chunks[n], scratch);
  StoreTiles(problem, tiles, scratch, sums);
}

inline void AttendChunks(const ForwardProblem& problem, const ChunkBlock& block, std::span<std::byte> memory) {
  Arena arena(memory);
  const Scratch scratch(arena, problem, block.rows.row_count);
  if (IsDecode(block.rows)) return AttendDecodeChunks(problem, block, scratch);

  const Tiles tiles(problem, block.rows, scratch);
  const ChunkList chunks = chunks_of(problem, block.rows);
  for (std::int64_t place = block.chunks.first; place < block.chunks.last; ++place) {
    for (std::int64_t t = 0; t < tiles.count; ++t) scratch.clear(t);
    AttendTiles(problem, block.rows, tiles, chunks[place], scratch);
    for (std::int64_t t = 0; t < tiles.count; ++t) {
      StorePartials(tiles.rows[t], scratch.state(t), problem.value_size, scratch.rows_in.data(),
                    [&](std::int64_t r) { return PartialOf(problem, block, place, tiles.first_row[t] + r); });
    }
  }
}

inline std::size_t ScratchBytes(const ForwardProblem& problem, std::int64_t rows) {
  Arena counter;
  const Scratch sizes(counter, problem, rows);
  return counter.used();
}

}  // namespace rapt::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
