// Steps 2 to 5 for the scores of one tile: softcap, bias, fill and hiding. Step 1, q · k, is in product/product-inl.h.
//
// `s` has one row for each key of the chunk, kTileRows apart, and one lane for each row of the tile.
#if defined(RAPT_CPU_SCORES_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef RAPT_CPU_SCORES_INL_H
#undef RAPT_CPU_SCORES_INL_H
#else
#define RAPT_CPU_SCORES_INL_H
#endif

#include "cpu/mask_tile-inl.h"
#include "cpu/product/product-inl.h"

HWY_BEFORE_NAMESPACE();
namespace rapt::cpu::HWY_NAMESPACE {

// Replaces each vector of s by change(s, key, lane), for keys [0, count).
template <class Change>
HWY_INLINE void ForEachVector(std::int64_t vectors, std::int64_t count, float* HWY_RESTRICT s, const Change& change) {
  for (std::int64_t key = 0; key < count; ++key) {
    for (std::int64_t v = 0; v < vectors; ++v) {
      float* place = s + key * kTileRows + v * kLanes;
      Store(change(Load(place), key, v * kLanes), place);
    }
  }
}

HWY_NOINLINE inline void Softcap(double cap, std::int64_t vectors, std::int64_t count, float* s) {
  const Vec inverse = Set(static_cast<float>(1.0 / cap));
  const Vec limit = Set(static_cast<float>(cap));
  ForEachVector(vectors, count, s,
                [&](Vec x, std::int64_t, std::int64_t) HWY_ATTR { return hn::Mul(limit, Tanh(hn::Mul(x, inverse))); });
}

// Adds −slope · |position − j|.
HWY_NOINLINE inline void AddAlibi(const AttentionProblem& problem, const TileRows& rows, std::int64_t first,
                                  std::int64_t count, float* s) {
  HWY_ALIGN float slope[TileRows::kMax];
  // Positions count from the first key of the chunk, because large positions would be rounded in f32. They do not count
  // from `first`, so that the bits do not depend on which keys of the chunk are computed.
  HWY_ALIGN float position[TileRows::kMax];
  const std::int64_t chunk = first / kChunk * kChunk;
  for (std::int64_t n = 0; n < rows.vectors * kLanes; ++n) {
    const auto lane = static_cast<std::size_t>(n);
    slope[n] = static_cast<float>(problem.alibi_slopes[static_cast<std::size_t>(rows.head[lane])]);
    position[n] = static_cast<float>(rows.i[lane] + rows.sequence->offset - chunk);
  }
  ForEachVector(rows.vectors, count, s, [&](Vec x, std::int64_t key, std::int64_t lane) HWY_ATTR {
    const Vec distance = hn::Abs(hn::Sub(Load(position + lane), Set(static_cast<float>(first - chunk + key))));
    return hn::NegMulAdd(Load(slope + lane), distance, x);
  });
}

// s becomes change(s, mask) for keys first … first + count − 1.
template <class Change>
HWY_INLINE void ChangeByMask(const Mask& mask, const TileRows& rows, std::int64_t first, std::int64_t count,
                             float* HWY_RESTRICT s, const Change& change) {
  ForEachMaskVector(mask, rows, first, count, [&](std::int64_t key, std::int64_t lane, Vec values) HWY_ATTR {
    float* place = s + key * kTileRows + lane;
    Store(change(Load(place), values), place);
  });
}

// Applies one mask of any kind.
HWY_NOINLINE inline void ApplyMask(const Mask& mask, const TileRows& rows, std::int64_t first, std::int64_t count,
                                   float* HWY_RESTRICT s) {
  const auto each = [&](const auto& change) HWY_ATTR { ChangeByMask(mask, rows, first, count, s, change); };
  const Vec zero = hn::Zero(kF32);
  const Vec fill = Set(static_cast<float>(mask.value));
  switch (mask.kind) {
    case Mask::Kind::add:  // −inf hides a key whatever its score: NaN + −inf would be NaN
      return each([](Vec x, Vec m) HWY_ATTR {
        return hn::IfThenElse(hn::Eq(m, NegativeInfinity()), NegativeInfinity(), hn::Add(x, m));
      });
    case Mask::Kind::fill: return each([&](Vec x, Vec m) HWY_ATTR { return hn::IfThenElse(hn::Ne(m, zero), fill, x); });
    case Mask::Kind::keep:
      return each([&](Vec x, Vec m) HWY_ATTR { return hn::IfThenElse(hn::Ne(m, zero), x, NegativeInfinity()); });
    case Mask::Kind::drop:
      return each([&](Vec x, Vec m) HWY_ATTR { return hn::IfThenElse(hn::Ne(m, zero), NegativeInfinity(), x); });
  }
}

// Sets the score to −inf where the causal mask, the window or the key length hides a key from a row.
HWY_NOINLINE inline void HideOutside(const TileRows& rows, std::int64_t first, std::int64_t count, float* s) {
  HWY_ALIGN float begin[TileRows::kMax];
  HWY_ALIGN float end[TileRows::kMax];
  const auto relative = [&](std::int64_t key) {  // within the chunk, hence exact in f32
    return static_cast<float>(std::clamp<std::int64_t>(key - first, -1, 2 * kChunk));
  };
  for (std::int64_t n = 0; n < rows.vectors * kLanes; ++n) {
    begin[n] = relative(rows.visible[static_cast<std::size_t>(n)].first);
    end[n] = relative(rows.visible[static_cast<std::size_t>(n)].last);
  }
  const auto in_range = [&](Vec j, std::int64_t lane)
                            HWY_ATTR { return hn::And(hn::Ge(j, Load(begin + lane)), hn::Lt(j, Load(end + lane))); };
  if (!rows.any.has_leading({first, first + count})) {
    return ForEachVector(rows.vectors, count, s, [&](Vec x, std::int64_t key, std::int64_t lane) HWY_ATTR {
      return hn::IfThenElse(in_range(Set(static_cast<float>(key)), lane), x, NegativeInfinity());
    });
  }
  HWY_ALIGN float leading[TileRows::kMax];
  for (std::int64_t n = 0; n < rows.vectors * kLanes; ++n) {
    leading[n] = relative(rows.visible[static_cast<std::size_t>(n)].leading);
  }
  ForEachVector(rows.vectors, count, s, [&](Vec x, std::int64_t key, std::int64_t lane) HWY_ATTR {
    const Vec j = Set(static_cast<float>(key));
    const VecMask seen = hn::Or(hn::Lt(j, Load(leading + lane)), in_range(j, lane));
    return hn::IfThenElse(seen, x, NegativeInfinity());
  });
}

// Each row's largest score, or `max` if that is larger. If a score is NaN, the result is unspecified, which does no
// harm: the sum of the row (see Weights) is then NaN.
template <int kV>
HWY_NOINLINE void FindMax(std::int64_t count, const float* HWY_RESTRICT s, float* HWY_RESTRICT max) {
  Columns<kV> largest;
  for (int v = 0; v < kV; ++v) largest[v] = Load(max + v * kLanes);
  for (std::int64_t key = 0; key < count; ++key, s += kTileRows) {
    for (int v = 0; v < kV; ++v) largest[v] = hn::Max(largest[v], Load(s + v * kLanes));
  }
  for (int v = 0; v < kV; ++v) Store(largest[v], max + v * kLanes);
}

inline void FindMax(std::int64_t vectors, std::int64_t count, const float* s, float* max) {
  WithVectors(vectors, [&](auto count_of) { FindMax<count_of()>(count, s, max); });
}

}  // namespace rapt::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
