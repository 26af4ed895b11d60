// Steps 6 to 8 for one tile and one chunk: weights, dropout, p · V, and merging the chunk into the rows' running state.
#if defined(RAPT_CPU_SOFTMAX_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef RAPT_CPU_SOFTMAX_INL_H
#undef RAPT_CPU_SOFTMAX_INL_H
#else
#define RAPT_CPU_SOFTMAX_INL_H
#endif

#include "cpu/dropout-inl.h"
#include "cpu/product/product-inl.h"
#include "cpu/rows.h"

HWY_BEFORE_NAMESPACE();
namespace rapt::cpu::HWY_NAMESPACE {

constexpr float kLog2e = 1.44269504F;

// The running state of a tile: for each row the maximum m, the sum l and the output o, both relative to exp(m).
struct TileState {
  float* m = nullptr;  // (kTileRows)
  float* l = nullptr;  // (kTileRows)
  float* o = nullptr;  // (Dv rounded up, kTileRows)
};

// −inf − −inf would be NaN. A fully masked row uses 0 as its maximum, so that every exp(−inf − 0) is 0.
HWY_INLINE Vec Finite(Vec m) { return hn::IfThenElse(hn::Eq(m, NegativeInfinity()), hn::Zero(kF32), m); }

// e^x for x ≤ 0.
HWY_INLINE Vec Exp(Vec x) { return Exp2(hn::Mul(x, Set(kLog2e))); }

// s becomes p = exp(s − m); `sum` becomes each row's sum, one chain, keys ascending.
template <int kV>
HWY_NOINLINE void Weights(std::int64_t count, const float* HWY_RESTRICT m, float* HWY_RESTRICT s,
                          float* HWY_RESTRICT sum) {
  Columns<kV> max, total;
  for (int v = 0; v < kV; ++v) {
    max[v] = Finite(Load(m + v * kLanes));
    total[v] = hn::Zero(kF32);
  }
  for (std::int64_t key = 0; key < count; ++key, s += kTileRows) {
    for (int v = 0; v < kV; ++v) {
      const Vec p = Exp(hn::Sub(Load(s + v * kLanes), max[v]));
      total[v] = hn::Add(total[v], p);
      Store(p, s + v * kLanes);
    }
  }
  for (int v = 0; v < kV; ++v) Store(total[v], sum + v * kLanes);
}

inline void Weights(std::int64_t vectors, std::int64_t count, const float* m, float* s, float* sum) {
  WithVectors(vectors, [&](auto count_of) { Weights<count_of()>(count, m, s, sum); });
}

// The factor that turns a chunk's p = exp(s − chunk_max) into weights of the whole row, whose maximum is m and whose
// sum is l. Kept and recomputed weights use the same formula, so that they have the same bits.
HWY_INLINE Vec WeightFactor(Vec chunk_max, Vec m, Vec l) {
  const Vec factor = hn::Div(Exp(hn::Sub(chunk_max, Finite(m))), l);
  return hn::IfThenElse(hn::Eq(l, hn::Zero(kF32)), hn::Zero(kF32), factor);
}

// Sets dropped p to 0; the factor 1 / (1 − rate) is applied at the end. `first` is the key of p's first row.
HWY_NOINLINE inline void DropWeights(const ResolvedDropout& dropout, const TileRows& rows, std::int64_t first,
                                     std::int64_t count, float* HWY_RESTRICT p) {
  const U32 u32;
  const auto threshold = hn::Set(u32, static_cast<std::uint32_t>(dropout.threshold));
  const bool all = dropout.threshold > 0xFFFFFFFFU;
  HWY_ALIGN std::uint32_t head[TileRows::kMax];
  HWY_ALIGN std::uint32_t query[TileRows::kMax];
  for (std::int64_t n = 0; n < rows.vectors * kLanes; ++n) {
    const auto lane = static_cast<std::size_t>(n);
    head[n] = dropout.head_start + static_cast<std::uint32_t>(rows.head[lane]);
    query[n] = dropout.query_start + static_cast<std::uint32_t>(rows.i[lane]);
  }
  const auto batch = hn::Set(u32, dropout.batch_start + static_cast<std::uint32_t>(rows.sequence->index));
  for (std::int64_t quad = first / 4; quad * 4 < first + count; ++quad) {
    for (std::int64_t lane = 0; lane < rows.vectors * kLanes; lane += kLanes) {
      VecU32 words[4] = {batch, hn::Load(u32, head + lane), hn::Load(u32, query + lane),
                         hn::Set(u32, static_cast<std::uint32_t>(quad))};
      Philox(words[0], words[1], words[2], words[3], dropout.key);
      for (std::int64_t w = 0; w < 4; ++w) {
        const std::int64_t key = quad * 4 + w - first;
        if (key < 0 || key >= count) continue;
        float* place = p + key * kTileRows + lane;
        const auto keep = hn::RebindMask(kF32, hn::Not(hn::Lt(words[w], threshold)));
        Store(all ? hn::Zero(kF32) : hn::IfThenElseZero(keep, Load(place)), place);
      }
    }
  }
}

// The factors of one merge: how the old state and the chunk are rescaled to their common maximum.
struct Merge {
  // Explicit, because a compiler-generated constructor would not be compiled for the current instruction set.
  HWY_INLINE Merge() {}  // NOLINT(modernize-use-equals-default)
  HWY_INLINE Merge(Vec keep_old_part, Vec keep_new_part) : keep_old(keep_old_part), keep_new(keep_new_part) {}

  Vec keep_old;
  Vec keep_new;
};

// Merges a chunk's maximum and sum into a row's.
HWY_INLINE Merge MergeSums(float* m, float* l, Vec chunk_max, Vec chunk_sum) {
  const Vec old_max = Load(m);
  const Vec max = hn::Max(old_max, chunk_max);
  const Vec finite = Finite(max);
  const Merge merge(Exp(hn::Sub(old_max, finite)), Exp(hn::Sub(chunk_max, finite)));
  Store(max, m);
  Store(hn::MulAdd(chunk_sum, merge.keep_new, hn::Mul(Load(l), merge.keep_old)), l);
  return merge;
}

// Σ_j p_j v_j for kV vectors of rows, each over its own range of keys. Outside the range, p is 0 and would change
// nothing.
template <int kV, class Address>
HWY_INLINE void AddRagged(const Address& values, const float* p, const Stretches& keys, Columns<kV> (&sums)[kMR]) {
  if constexpr (kV > 1) AddProducts<0, 1, kV>(values, p, keys.begin[0], keys.begin[1], sums);
  if constexpr (kV > 2) AddProducts<0, 2, kV>(values, p, keys.begin[1], keys.begin[2], sums);
  AddProducts<0, kV, kV>(values, p, keys.begin[kV - 1], keys.end[0], sums);
  if constexpr (kV > 1) AddProducts<1, kV, kV>(values, p, keys.end[0], keys.end[1], sums);
  if constexpr (kV > 2) AddProducts<2, kV, kV>(values, p, keys.end[1], keys.end[2], sums);
}

// The values of a chunk for WeightedSum: the kMR columns of a panel are adjacent.
struct ValueRows {
  const float* data = nullptr;
  std::int64_t row_stride = 0, panel_stride = 0;
};

// o = o · keep_old + (p · V) · keep_new.
template <int kV>
HWY_NOINLINE void WeightedSum(const float* HWY_RESTRICT p, const Stretches& keys, const ValueRows& rows,
                              std::int64_t panels, const float* chunk_max, const float* chunk_sum,
                              const TileState& state) {
  Merge merge[static_cast<std::size_t>(kV)];
  for (int v = 0; v < kV; ++v) {
    merge[v] = MergeSums(state.m + v * kLanes, state.l + v * kLanes, Load(chunk_max + v * kLanes),
                         Load(chunk_sum + v * kLanes));
  }
  float* HWY_RESTRICT o = state.o;
  const float* HWY_RESTRICT values = rows.data;
  const std::int64_t stride = rows.row_stride;
  for (std::int64_t panel = 0; panel < panels; ++panel, values += rows.panel_stride, o += kMR * kTileRows) {
    Columns<kV> sums[kMR];
    SetZero<kV>(sums);
    if (stride == kMR) {
      AddRagged<kV>([&](int r, std::int64_t j) { return values + j * kMR + r; }, p, keys, sums);
    } else {
      AddRagged<kV>([&](int r, std::int64_t j) { return values + j * stride + r; }, p, keys, sums);
    }
    for (int r = 0; r < kMR; ++r) {
      for (int v = 0; v < kV; ++v) {
        float* place = o + r * kTileRows + v * kLanes;
        Store(hn::MulAdd(sums[r][v], merge[v].keep_new, hn::Mul(Load(place), merge[v].keep_old)), place);
      }
    }
  }
}

}  // namespace rapt::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
