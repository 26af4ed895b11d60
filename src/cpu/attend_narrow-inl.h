// Attention for a block of few rows, as in decoding: the same steps, with the products of narrow-inl.h.
#if defined(RAPT_CPU_ATTEND_NARROW_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef RAPT_CPU_ATTEND_NARROW_INL_H
#undef RAPT_CPU_ATTEND_NARROW_INL_H
#else
#define RAPT_CPU_ATTEND_NARROW_INL_H
#endif

#include "cpu/finish-inl.h"
#include "cpu/masked_scores-inl.h"

HWY_BEFORE_NAMESPACE();
namespace rapt::cpu::HWY_NAMESPACE {

// With tiles narrower than that (one lane), there is nothing to gain.
inline bool IsNarrow(const RowBlock& block) { return kTileRows >= kNarrowRows && block.row_count <= kNarrowRows; }

// One chunk of keys for few rows: their states after this chunk alone.
inline void AttendNarrowChunk(const ForwardProblem& problem, const RowBlock& block, const TileRows& rows,
                              KeyRange chunk, const Scratch& scratch, const RowState* states) {
  for (std::int64_t r = 0; r < rows.count; ++r) states[r].clear();
  const TileKeys keys = VisibleTileKeys(problem, rows, chunk);
  if (keys.range.first >= keys.range.last) return;
  const std::int64_t count = keys.range.last - keys.range.first;
  float* s = scratch.s.data();
  const CacheRows key_rows(problem.key, block, scratch.rows_in.data());
  const CacheRows value_rows(problem.value, block, scratch.rows_in.data());
  HWY_ALIGN float max[TileRows::kMax];
  HWY_ALIGN float sum[TileRows::kMax];

  for (std::int64_t j = keys.range.first; j < keys.range.last; j += kNarrowKeys) {
    const std::int64_t some = std::min(kNarrowKeys, keys.range.last - j);
    const float* from[kNarrowKeys];
    key_rows.load(j, some, from);
    for (std::int64_t n = some; n < kNarrowKeys; ++n) from[n] = from[some - 1];
    const CacheRows::Ahead ahead = key_rows.ahead(j + some, std::min(j + some + kNarrowKeys, keys.range.last));
    float* to = s + (j - keys.range.first) * kTileRows;
    if (rows.count <= 4) {
      NarrowScores<4>(scratch.q.data(), problem.head_size, from, ahead, to);
    } else {
      NarrowScores<8>(scratch.q.data(), problem.head_size, from, ahead, to);
    }
  }
  if (HasTerms(problem) || IsEdge(rows, keys.range)) {
    MaskScores(problem, rows, keys, scratch.mask.data(), s, max);
  } else {
    ResetMax(rows, max);
    FindMax(rows.vectors, count, s, max);
  }
  Weights(rows.vectors, count, max, s, sum);
  if (problem.dropout.on) DropWeights(problem.dropout, rows, keys.range.first, count, s);

  float* o[kNarrowRows];
  for (std::int64_t r = 0; r < rows.count; ++r) {
    states[r].m() = max[r];
    states[r].l() = sum[r];
    o[r] = states[r].o();
  }
  for (std::int64_t j = 0; j < count; j += kNarrowKeys) {
    const std::int64_t some = std::min(kNarrowKeys, count - j);
    const float* from[kNarrowKeys];
    value_rows.load(keys.range.first + j, some, from);
    const CacheRows::Ahead ahead =
        value_rows.ahead(keys.range.first + j + some, keys.range.first + std::min(j + some + kNarrowKeys, count));
    const float* p = s + j * kTileRows;
    std::int64_t r = 0;
    for (; r + 4 <= rows.count; r += 4) NarrowWeightedSum<4>(p + r, from, some, problem.value_size, ahead, o + r);
    for (; r + 2 <= rows.count; r += 2) NarrowWeightedSum<2>(p + r, from, some, problem.value_size, ahead, o + r);
    for (; r < rows.count; ++r) NarrowWeightedSum<1>(p + r, from, some, problem.value_size, ahead, o + r);
  }
}

// A block of few rows, from its first key to its last.
inline void AttendNarrow(const ForwardProblem& problem, const RowBlock& block, const RowSums& sums,
                         const Scratch& scratch) {
  const TileRows rows(problem, block, block.first_row, block.row_count, kLanes);
  LoadQueries(problem, rows, scratch.rows_in.data(), scratch.q.data());
  RowState whole[kNarrowRows];
  RowState part[kNarrowRows];  // of the chunk at hand
  for (std::int64_t r = 0; r < rows.count; ++r) {
    const std::int64_t floats = RowState::floats(problem.value_size);
    whole[r] = RowState(scratch.row_states.data() + r * floats, problem.value_size);
    part[r] = RowState(scratch.row_states.data() + (kNarrowRows + r) * floats, problem.value_size);
    whole[r].clear();
  }
  // Lanes without a row take part in the softmax, for nothing: they need some number.
  std::fill(scratch.s.begin(), scratch.s.end(), 0.0F);
  for (std::int64_t start = rows.any.first / kChunk * kChunk; start < rows.any.last; start += kChunk) {
    AttendNarrowChunk(problem, block, rows, {start, std::min(start + kChunk, rows.any.last)}, scratch, part);
    for (std::int64_t r = 0; r < rows.count; ++r) whole[r].merge(part[r]);
  }
  for (std::int64_t r = 0; r < rows.count; ++r) FinishRow(problem, rows, r, whole[r], sums);
}

}  // namespace rapt::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
