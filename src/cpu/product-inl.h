// The one register-blocked product: sums[r][v] += Σ_k a(r, k) · b[k][v], each sum one chain of fused multiply-adds, k
// ascending.
#if defined(RAPT_CPU_PRODUCT_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef RAPT_CPU_PRODUCT_INL_H
#undef RAPT_CPU_PRODUCT_INL_H
#else
#define RAPT_CPU_PRODUCT_INL_H
#endif

#include "cpu/vectors-inl.h"

HWY_BEFORE_NAMESPACE();
namespace rapt::cpu::HWY_NAMESPACE {

// kV vectors side by side.
template <int kV>
using Columns = Vec[static_cast<std::size_t>(kV)];

// `a(r, k)` gives the address of a number that is multiplied with all vectors of row k of b; rows of b are kTileRows
// apart.
template <int kV, class Address>
HWY_INLINE void Product(const Address& a, const float* HWY_RESTRICT b, std::int64_t count,
                        Columns<kV> (&sums)[kBroadcasts]) {
  for (auto& row : sums) {
    for (Vec& sum : row) sum = hn::Zero(kF32);
  }
  for (std::int64_t k = 0; k < count; ++k, b += kTileRows) {
    Columns<kV> columns;
    for (int v = 0; v < kV; ++v) columns[v] = Load(b + v * kLanes);
    for (int r = 0; r < kBroadcasts; ++r) {
      const Vec factor = Set(*a(r, k));
      for (int v = 0; v < kV; ++v) sums[r][v] = hn::MulAdd(factor, columns[v], sums[r][v]);
    }
  }
}

}  // namespace rapt::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
