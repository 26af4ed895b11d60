// Attention for one block of rows: the algorithm, top to bottom.
#if defined(RAPT_CPU_ATTEND_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef RAPT_CPU_ATTEND_INL_H
#undef RAPT_CPU_ATTEND_INL_H
#else
#define RAPT_CPU_ATTEND_INL_H
#endif

#include <limits>

#include "cpu/attend_narrow-inl.h"
#include "cpu/finish-inl.h"
#include "cpu/masked_scores-inl.h"

HWY_BEFORE_NAMESPACE();
namespace rapt::cpu::HWY_NAMESPACE {

// Values [range) of a chunk, packed for WeightedSum: for each group of kBroadcasts columns (kChunk, kBroadcasts).
inline void PackValues(const ForwardProblem& problem, const RowBlock& block, KeyRange range, const Scratch& scratch) {
  const ConstTensorView& view = problem.value;
  const std::int64_t size = problem.value_size;
  const std::int64_t base = row_offset(view, block.sequence->batch, block.kv_head, block.sequence->key_begin);
  const bool in_place = reads_in_place(view);
  const hn::CappedTag<float, kBroadcasts> group;
  const auto step = static_cast<std::int64_t>(hn::Lanes(group));
  for (std::int64_t j = range.first; j < range.last; ++j) {
    const float* row = scratch.rows_in.data();
    if (in_place) {
      row = static_cast<const float*>(view.data()) + base + j * view.stride(2);
    } else {
      LoadRow(view, base + j * view.stride(2), view.stride(3), size, scratch.rows_in.data());
    }
    float* to = scratch.values.data() + (j - range.first) * kBroadcasts;
    std::int64_t d = 0;
    for (; d + kBroadcasts <= size; d += kBroadcasts, to += kPanel) {
      for (std::int64_t n = 0; n < kBroadcasts; n += step) hn::StoreU(hn::LoadU(group, row + d + n), group, to + n);
    }
    for (; d < scratch.padded_value_size; ++d) *to++ = d < size ? row[d] : 0.0F;
  }
}

// One tile against one chunk of keys.
template <int kV>
void AttendChunk(const ForwardProblem& problem, const TileRows& rows, KeyRange chunk, const float* q,
                 const KeyRows& key_rows, const Scratch& scratch, const TileState& state) {
  const TileKeys keys = VisibleTileKeys(problem, rows, chunk);
  if (keys.range.first >= keys.range.last) return;
  const std::int64_t count = keys.range.last - keys.range.first;
  HWY_ALIGN float max[TileRows::kMax];
  HWY_ALIGN float sum[TileRows::kMax];

  MaskedScores(problem, rows, keys, q, key_rows, scratch.mask.data(), scratch.s.data(), max);
  Weights<kV>(count, max, scratch.s.data(), sum);
  if (problem.dropout.on) DropWeights(problem.dropout, rows, keys.range.first, count, scratch.s.data());
  WeightedSum<kV>(scratch.s.data(), Stretches(rows, keys.range, kLanes),
                  scratch.values.data() + (keys.range.first - chunk.first) * kBroadcasts, kPanel,
                  scratch.padded_value_size / kBroadcasts, max, sum, state);
}

inline void AttendChunk(const ForwardProblem& problem, const TileRows& rows, KeyRange chunk, const float* q,
                        const KeyRows& key_rows, const Scratch& scratch, const TileState& state) {
  WithVectors(rows.vectors,
              [&](auto count_of) { AttendChunk<count_of()>(problem, rows, chunk, q, key_rows, scratch, state); });
}

inline void Attend(const ForwardProblem& problem, const RowBlock& block, const RowSums& sums,
                   std::span<std::byte> memory) {
  Arena arena(memory);
  const Scratch scratch(arena, problem, block.row_count);
  if (IsNarrow(block)) return AttendNarrow(problem, block, sums, scratch);

  // Tiles of even width: a last tile of one vector would leave the multipliers waiting.
  const std::int64_t vectors = (block.row_count + kLanes - 1) / kLanes;
  const std::int64_t tiles = (vectors + kVectors - 1) / kVectors;
  TileRows rows[kTilesPerBlock];
  KeyRange any = {AttentionProblem::kOpen, 0};
  for (std::int64_t t = 0, first = 0; t < tiles; ++t) {
    const std::int64_t width = (vectors / tiles + (t < vectors % tiles ? 1 : 0)) * kLanes;
    const std::int64_t count = std::min(width, block.row_count - first);
    rows[t] = TileRows(problem, block, block.first_row + first, count, kLanes);
    first += count;
    if (rows[t].any.first < rows[t].any.last) {
      any = {std::min(any.first, rows[t].any.first), std::max(any.last, rows[t].any.last)};
    }
    LoadQueries(problem, rows[t], scratch.rows_in.data(), scratch.q.data() + t * problem.head_size * kTileRows);
    const TileState state = scratch.state(t);
    std::fill_n(state.m, kTileRows, -std::numeric_limits<float>::infinity());
    std::fill_n(state.l, kTileRows, 0.0F);
    std::fill_n(state.o, scratch.padded_value_size * kTileRows, 0.0F);
  }

  for (std::int64_t start = any.first / kChunk * kChunk; start < any.last; start += kChunk) {
    const KeyRange chunk = {std::max(start, any.first), std::min(start + kChunk, any.last)};
    const KeyRows keys = LoadKeys(problem, *block.sequence, block.kv_head, chunk, scratch.keys.data());
    PackValues(problem, block, chunk, scratch);
    for (std::int64_t t = 0; t < tiles; ++t) {
      AttendChunk(problem, rows[t], chunk, scratch.q.data() + t * problem.head_size * kTileRows, keys, scratch,
                  scratch.state(t));
    }
  }

  for (std::int64_t t = 0; t < tiles; ++t) {
    if (problem.sinks.defined()) AddSinks(problem, rows[t], scratch.state(t), scratch.padded_value_size);
    StoreRows(problem, rows[t], scratch.state(t), scratch, sums);
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
