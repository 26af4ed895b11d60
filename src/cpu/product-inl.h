// The one register-blocked product: sums[r][v] += Σ_k a(r, k) · b[k][v], each sum one chain of fused multiply-adds, k
// ascending.
#if defined(RAPT_CPU_PRODUCT_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef RAPT_CPU_PRODUCT_INL_H
#undef RAPT_CPU_PRODUCT_INL_H
#else
#define RAPT_CPU_PRODUCT_INL_H
#endif

#include <type_traits>

#include "cpu/vectors-inl.h"

HWY_BEFORE_NAMESPACE();
namespace rapt::cpu::HWY_NAMESPACE {

// kV vectors side by side.
template <int kV>
using Columns = Vec[static_cast<std::size_t>(kV)];

// Vectors kFirst … kLast − 1 of the sums, for rows k = begin … end − 1 of b, which are kTileRows apart. `a(r, k)` gives
// the address of the number that multiplies row k.
template <int kFirst, int kLast, int kV, class Address>
HWY_INLINE void AddProducts(const Address& a, const float* HWY_RESTRICT b, std::int64_t begin, std::int64_t end,
                            Columns<kV> (&sums)[kBroadcasts]) {
  b += begin * kTileRows;
  for (std::int64_t k = begin; k < end; ++k, b += kTileRows) {
    Columns<kV> columns;
    for (int v = kFirst; v < kLast; ++v) columns[v] = Load(b + v * kLanes);
    for (int r = 0; r < kBroadcasts; ++r) {
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
  run(std::integral_constant<int, kVectors>());
}

template <int kV>
HWY_INLINE void SetZero(Columns<kV> (&sums)[kBroadcasts]) {
  for (auto& row : sums) {
    for (Vec& sum : row) sum = hn::Zero(kF32);
  }
}

}  // namespace rapt::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
