// The register-blocked product of attention: sums[r][v] += Σ_k a(r, k) · b[k][v], each sum one chain of fused
// multiply-adds, k ascending. This file also has q · k, which is this product for the keys of a chunk and the rows of a
// tile.
#if defined(RAPT_CPU_PRODUCT_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef RAPT_CPU_PRODUCT_INL_H
#undef RAPT_CPU_PRODUCT_INL_H
#else
#define RAPT_CPU_PRODUCT_INL_H
#endif

#include <algorithm>
#include <type_traits>

#include "cpu/kernel_table.h"
#include "cpu/vectors-inl.h"

HWY_BEFORE_NAMESPACE();
namespace rapt::cpu::HWY_NAMESPACE {

// kV adjacent vectors.
template <int kV>
using Columns = Vec[static_cast<std::size_t>(kV)];

// Adds the products of rows k = begin … end − 1 of b, which are kTileRows apart, to vectors kFirst … kLast − 1 of the
// sums. `a(r, k)` gives the address of the number that multiplies row k for sums[r].
template <int kFirst, int kLast, int kV, class Address>
HWY_INLINE void AddProducts(const Address& a, const float* HWY_RESTRICT b, std::int64_t begin, std::int64_t end,
                            Columns<kV> (&sums)[kMR]) {
  b += begin * kTileRows;
  for (std::int64_t k = begin; k < end; ++k, b += kTileRows) {
    Columns<kV> columns;
    for (int v = kFirst; v < kLast; ++v) columns[v] = Load(b + v * kLanes);
    for (int r = 0; r < kMR; ++r) {
      const Vec factor = Set(*a(r, k));
      for (int v = kFirst; v < kLast; ++v) sums[r][v] = hn::MulAdd(factor, columns[v], sums[r][v]);
    }
  }
}

// Calls run with the number of vectors as a constant.
template <class Run>
HWY_INLINE void WithVectors(std::int64_t vectors, const Run& run) {
  if (vectors == 1) return run(std::integral_constant<int, 1>());
  if (vectors == 2) return run(std::integral_constant<int, 2>());
  run(std::integral_constant<int, kNR>());
}

template <int kV>
HWY_INLINE void SetZero(Columns<kV> (&sums)[kMR]) {
  for (auto& row : sums) {
    for (Vec& sum : row) sum = hn::Zero(kF32);
  }
}

// ---------------------------------------------------------------- q · k

// Rows of the keys of a chunk as f32, `stride` apart; `data` is the row of key `first`. If the rows are in several
// pages, of 2^page_shift rows each, `pages` points to these, and `first` is the first key of the first page.
struct KeyRows {
  static constexpr std::int64_t kMostPages = kChunk / 16;

  const float* data = nullptr;
  std::int64_t stride = 0;
  std::int64_t first = 0;
  int page_shift = 0;              // 0: contiguous rows
  const float* pages[kMostPages];  // set for existing keys only

  const float* operator()(std::int64_t j) const {
    if (page_shift == 0) return data + (j - first) * stride;
    const std::int64_t page = (j - first) >> page_shift;
    return pages[page] + (j - first - (page << page_shift)) * stride;
  }
};

// Scores of keys [range); `max` becomes the larger of itself and each row's largest score. q is scaled and transposed:
// (D, kTileRows).
template <int kV>
HWY_NOINLINE void Scores(const float* HWY_RESTRICT q, std::int64_t head_size, const KeyRows& keys, KeyRange range,
                         float* HWY_RESTRICT s, float* HWY_RESTRICT max) {
  Columns<kV> largest;
  for (int v = 0; v < kV; ++v) largest[v] = Load(max + v * kLanes);
  for (std::int64_t j = range.first; j < range.last; j += kMR, s += kMR * kTileRows) {
    // Past the last key, the row of the last key is read again. The extra sums are written past the range, where
    // nothing is stored yet.
    const float* rows[kMR];
    for (std::int64_t r = 0; r < kMR; ++r) rows[r] = keys(std::min(j + r, range.last - 1));
    Columns<kV> sums[kMR];
    SetZero<kV>(sums);
    AddProducts<0, kV, kV>([&](int r, std::int64_t d) { return rows[r] + d; }, q, 0, head_size, sums);
    for (int r = 0; r < kMR; ++r) {
      for (int v = 0; v < kV; ++v) {
        Store(sums[r][v], s + r * kTileRows + v * kLanes);
        largest[v] = hn::Max(largest[v], sums[r][v]);
      }
    }
  }
  for (int v = 0; v < kV; ++v) Store(largest[v], max + v * kLanes);
}

inline void Scores(std::int64_t vectors, const float* q, std::int64_t head_size, const KeyRows& keys, KeyRange range,
                   float* s, float* max) {
  WithVectors(vectors, [&](auto count_of) { Scores<count_of()>(q, head_size, keys, range, s, max); });
}

}  // namespace rapt::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
