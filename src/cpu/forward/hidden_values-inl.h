// Masked values must not affect a row. The products for p · V multiply a masked value by 0, but 0 · NaN is NaN. So rows
// whose result is not finite are computed again without their masked values. On finite inputs this costs only one check
// per result.
#if defined(RAPT_CPU_HIDDEN_VALUES_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef RAPT_CPU_HIDDEN_VALUES_INL_H
#undef RAPT_CPU_HIDDEN_VALUES_INL_H
#else
#define RAPT_CPU_HIDDEN_VALUES_INL_H
#endif

#include "cpu/forward/finish-inl.h"
#include "cpu/masked_scores-inl.h"

HWY_BEFORE_NAMESPACE();
namespace rapt::cpu::HWY_NAMESPACE {

// sums[d] = Σ_j p_j v_j over the keys that each row sees, that is, whose score is not −inf. The chains are those of
// WeightedSum, with 0 in place of the values of hidden keys. A weight of 0 does not imply a masked key, because dropout
// and underflow give 0 too. `sums` is (Dv, kTileRows), `row` has space for one row of v.
HWY_NOINLINE inline void SumSeenValues(const KvRows& values, const TileRows& rows, KeyRange range, std::int64_t size,
                                       const float* HWY_RESTRICT s, const float* HWY_RESTRICT p,
                                       float* HWY_RESTRICT row, float* HWY_RESTRICT sums) {
  std::fill_n(sums, size * kTileRows, 0.0F);
  for (std::int64_t j = range.first; j < range.last; ++j, s += kTileRows, p += kTileRows) {
    LoadRow(values, j, size, row);
    for (std::int64_t lane = 0; lane < rows.vectors * kLanes; lane += kLanes) {
      const VecMask hidden = hn::Eq(Load(s + lane), NegativeInfinity());
      const Vec weight = Load(p + lane);
      for (std::int64_t d = 0; d < size; ++d) {
        float* place = sums + d * kTileRows + lane;
        Store(hn::MulAdd(weight, hn::IfThenZeroElse(hidden, Set(row[d])), Load(place)), place);
      }
    }
  }
}

// Recomputes the rows of a tile without their masked values, and writes them. A finite row gets the same bits again, so
// it does not matter which row of the tile was not finite. The memory of tile `tile` is overwritten.
HWY_NOINLINE inline void RepeatRows(const ForwardProblem& problem, const TileRows& rows, std::int64_t tile,
                                    const Scratch& scratch, const RowSums& sums) {
  const std::int64_t kv_head = rows.head[0] / problem.group;
  const std::int64_t size = problem.value_size;
  const KvRows values = KvRows::values(problem, *rows.sequence, kv_head);
  const TileState state = scratch.state(tile);
  float* s = scratch.s.data();
  float* p = scratch.decode_s.data();
  float* chunk_o = scratch.values.data();
  static_assert(Scratch::kDecodeScores >= (kChunk + kMR) * kTileRows && kChunk >= kTileRows);
  HWY_ALIGN float max[TileRows::kMax];
  HWY_ALIGN float sum[TileRows::kMax];

  LoadQueries(problem, rows, scratch.rows_in.data(), scratch.queries(tile));
  scratch.clear(tile);
  const ChunkList chunks = rows.any.chunks();
  for (std::int64_t n = 0; n < chunks.count(); ++n) {
    const TileKeys keys = VisibleTileKeys(problem, rows, rows.any.within_chunk(chunks[n]));
    if (keys.range.first >= keys.range.last) continue;
    const std::int64_t count = keys.range.last - keys.range.first;
    const KeyRows key_rows = LoadKeys(problem, *rows.sequence, kv_head, keys.range, scratch.keys.data());
    MaskedScores(problem, rows, keys, scratch.queries(tile), key_rows, s, max);
    std::copy_n(s, count * kTileRows, p);
    Weights(rows.vectors, count, max, p, sum);
    if (problem.dropout.on) DropWeights(problem.dropout, rows, keys.range.first, count, p);
    SumSeenValues(values, rows, keys.range, size, s, p, scratch.rows_in.data(), chunk_o);
    for (std::int64_t lane = 0; lane < rows.vectors * kLanes; lane += kLanes) {
      const Merge merge = MergeSums(state.m + lane, state.l + lane, Load(max + lane), Load(sum + lane));
      for (std::int64_t d = 0; d < size; ++d) {
        float* place = state.o + d * kTileRows + lane;
        const Vec added = Load(chunk_o + d * kTileRows + lane);
        Store(hn::MulAdd(added, merge.keep_new, hn::Mul(Load(place), merge.keep_old)), place);
      }
    }
  }
  if (problem.sinks.defined()) AddSinks(problem, rows, state, scratch.padded_value_size);
  StoreRows(problem, rows, state, scratch, sums);
}

}  // namespace rapt::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
