// Small vector helpers: transposes between rows and lanes, and the two functions attention needs, exp2 and tanh.
//
// In most kernels a vector holds one number for each of several rows: lane r belongs to row r. All computation for a
// row stays in its own lane, so rows cannot affect each other. (Packed products, dq, dk and dv have columns in lanes;
// the decode path has keys or columns.) No sum crosses lanes.
#if defined(RAPT_CPU_VECTORS_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef RAPT_CPU_VECTORS_INL_H
#undef RAPT_CPU_VECTORS_INL_H
#else
#define RAPT_CPU_VECTORS_INL_H
#endif

#include <cstdint>

#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace rapt::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using F32 = hn::ScalableTag<float>;
using I32 = hn::RebindToSigned<F32>;
using U32 = hn::RebindToUnsigned<F32>;
using Vec = hn::Vec<F32>;
using VecMask = hn::Mask<F32>;
constexpr F32 kF32;
constexpr std::int64_t kLanes = HWY_TARGET == HWY_SCALAR ? 1 : HWY_MAX_BYTES / 4;

// The register tile of a product, MR × NR: kMR × kNR vectors of sums, from kMR broadcasts and kNR vectors.
#if HWY_TARGET <= HWY_AVX3 || HWY_ARCH_ARM_A64
constexpr std::int64_t kMR = 8;  // 32 registers
constexpr std::int64_t kNR = 3;
#else
constexpr std::int64_t kMR = 4;  // 16 registers: 12 sums, 3 vectors, 1 broadcast
constexpr std::int64_t kNR = 3;
#endif
constexpr std::int64_t kTileRows = kNR * kLanes;

constexpr std::int64_t RoundUp(std::int64_t value, std::int64_t step) { return (value + step - 1) / step * step; }

HWY_INLINE Vec Load(const float* from) { return hn::Load(kF32, from); }
HWY_INLINE void Store(Vec v, float* to) { hn::Store(v, kF32, to); }
HWY_INLINE Vec Set(float value) { return hn::Set(kF32, value); }
HWY_INLINE Vec NegativeInfinity() { return hn::Neg(hn::Inf(kF32)); }

// Checks whether many numbers are finite: the check starts at 0 and becomes NaN in each lane that met a non-finite
// number.
HWY_INLINE Vec NotFinite(Vec x, Vec check) { return hn::MulAdd(x, hn::Zero(kF32), check); }
HWY_INLINE bool AllFinite(Vec check) { return hn::AllTrue(kF32, hn::Eq(check, hn::Zero(kF32))); }

// ---------------------------------------------------------------- rows into lanes

#if HWY_TARGET != HWY_SCALAR

// One vector with 128 bits from each of rows 0, 4, 8, …: kLanes / 4 rows.
HWY_INLINE Vec LoadEveryFourth(const float* const* rows, std::int64_t offset) {
  const hn::Full128<float> block;
#if HWY_MAX_BYTES == 16
  (void)block;
  return hn::LoadU(kF32, rows[0] + offset);
#elif HWY_MAX_BYTES == 32
  return hn::Combine(kF32, hn::LoadU(block, rows[4] + offset), hn::LoadU(block, rows[0] + offset));
#else
  const hn::Full256<float> half;
  const auto low = hn::Combine(half, hn::LoadU(block, rows[4] + offset), hn::LoadU(block, rows[0] + offset));
  const auto high = hn::Combine(half, hn::LoadU(block, rows[12] + offset), hn::LoadU(block, rows[8] + offset));
  return hn::Combine(kF32, high, low);
#endif
}

HWY_INLINE void StoreEveryFourth(Vec v, float* const* rows, std::int64_t offset) {
  const hn::Full128<float> block;
#if HWY_MAX_BYTES == 16
  (void)block;
  hn::StoreU(v, kF32, rows[0] + offset);
#elif HWY_MAX_BYTES == 32
  hn::StoreU(hn::LowerHalf(block, v), block, rows[0] + offset);
  hn::StoreU(hn::UpperHalf(block, v), block, rows[4] + offset);
#else
  const hn::Full256<float> half;
  const auto low = hn::LowerHalf(half, v);
  const auto high = hn::UpperHalf(half, v);
  hn::StoreU(hn::LowerHalf(block, low), block, rows[0] + offset);
  hn::StoreU(hn::UpperHalf(block, low), block, rows[4] + offset);
  hn::StoreU(hn::LowerHalf(block, high), block, rows[8] + offset);
  hn::StoreU(hn::UpperHalf(block, high), block, rows[12] + offset);
#endif
}

// Transposes the 4×4 matrix in each 128-bit block of four vectors.
HWY_INLINE void TransposeBlocks(Vec& v0, Vec& v1, Vec& v2, Vec& v3) {
  const Vec x0 = hn::InterleaveLower(kF32, v0, v2);
  const Vec x1 = hn::InterleaveLower(kF32, v1, v3);
  const Vec x2 = hn::InterleaveUpper(kF32, v0, v2);
  const Vec x3 = hn::InterleaveUpper(kF32, v1, v3);
  v0 = hn::InterleaveLower(kF32, x0, x1);
  v1 = hn::InterleaveUpper(kF32, x0, x1);
  v2 = hn::InterleaveLower(kF32, x2, x3);
  v3 = hn::InterleaveUpper(kF32, x2, x3);
}

// Transposes kLanes vectors, taken as the rows of a matrix.
HWY_INLINE void Transpose(Vec (&v)[kLanes]) {
  for (std::int64_t n = 0; n < kLanes; n += 4) TransposeBlocks(v[n], v[n + 1], v[n + 2], v[n + 3]);
#if HWY_MAX_BYTES == 32
  for (std::int64_t n = 0; n < 4; ++n) {
    const Vec a = v[n], b = v[n + 4];
    v[n] = hn::ConcatLowerLower(kF32, b, a);
    v[n + 4] = hn::ConcatUpperUpper(kF32, b, a);
  }
#elif HWY_MAX_BYTES == 64
  for (std::int64_t n = 0; n < 4; ++n) {
    const Vec a = v[n], b = v[n + 4], c = v[n + 8], d = v[n + 12];
    const Vec ab_even = hn::OddEvenBlocks(hn::SwapAdjacentBlocks(b), a),
              ab_odd = hn::OddEvenBlocks(b, hn::SwapAdjacentBlocks(a));
    const Vec cd_even = hn::OddEvenBlocks(hn::SwapAdjacentBlocks(d), c),
              cd_odd = hn::OddEvenBlocks(d, hn::SwapAdjacentBlocks(c));
    v[n] = hn::ConcatLowerLower(kF32, cd_even, ab_even);
    v[n + 4] = hn::ConcatLowerLower(kF32, cd_odd, ab_odd);
    v[n + 8] = hn::ConcatUpperUpper(kF32, cd_even, ab_even);
    v[n + 12] = hn::ConcatUpperUpper(kF32, cd_odd, ab_odd);
  }
#endif
}

// Elements offset … offset + 3 of kLanes rows: four vectors, row r in lane r.
HWY_INLINE void LoadFourColumns(const float* const* rows, std::int64_t offset, Vec& c0, Vec& c1, Vec& c2, Vec& c3) {
  c0 = LoadEveryFourth(rows + 0, offset);
  c1 = LoadEveryFourth(rows + 1, offset);
  c2 = LoadEveryFourth(rows + 2, offset);
  c3 = LoadEveryFourth(rows + 3, offset);
  TransposeBlocks(c0, c1, c2, c3);
}

// The inverse of LoadFourColumns.
HWY_INLINE void StoreFourColumns(Vec c0, Vec c1, Vec c2, Vec c3, float* const* rows, std::int64_t offset) {
  TransposeBlocks(c0, c1, c2, c3);
  StoreEveryFourth(c0, rows + 0, offset);
  StoreEveryFourth(c1, rows + 1, offset);
  StoreEveryFourth(c2, rows + 2, offset);
  StoreEveryFourth(c3, rows + 3, offset);
}

#else  // one lane: nothing to transpose

HWY_INLINE void Transpose(Vec (&)[kLanes]) {}
HWY_INLINE void LoadFourColumns(const float* const* rows, std::int64_t offset, Vec& c0, Vec& c1, Vec& c2, Vec& c3) {
  c0 = Set(rows[0][offset]), c1 = Set(rows[0][offset + 1]);
  c2 = Set(rows[0][offset + 2]), c3 = Set(rows[0][offset + 3]);
}
HWY_INLINE void StoreFourColumns(Vec c0, Vec c1, Vec c2, Vec c3, float* const* rows, std::int64_t offset) {
  Store(c0, rows[0] + offset), Store(c1, rows[0] + offset + 1);
  Store(c2, rows[0] + offset + 2), Store(c3, rows[0] + offset + 3);
}

#endif

// Calls visit(n, column) for elements n of kLanes rows, row r in lane r, in whole vectors and then in fours. Returns
// how many were visited; the rest, fewer than four, is left to the caller.
template <class Visit>
HWY_INLINE std::int64_t LoadColumns(const float* const* rows, std::int64_t count, const Visit& visit) {
  std::int64_t n = 0;
  for (; n + kLanes <= count; n += kLanes) {
    Vec columns[kLanes];
    for (std::int64_t r = 0; r < kLanes; ++r) columns[r] = hn::LoadU(kF32, rows[r] + n);
    Transpose(columns);
    for (std::int64_t c = 0; c < kLanes; ++c) visit(n + c, columns[c]);
  }
  for (; n + 4 <= count; n += 4) {
    Vec c0, c1, c2, c3;
    LoadFourColumns(rows, n, c0, c1, c2, c3);
    visit(n, c0), visit(n + 1, c1), visit(n + 2, c2), visit(n + 3, c3);
  }
  return n;
}

// The inverse of LoadColumns: column(n) gives the vector of elements n.
template <class Column>
HWY_INLINE std::int64_t StoreColumns(const Column& column, std::int64_t count, float* const* rows) {
  std::int64_t n = 0;
  for (; n + kLanes <= count; n += kLanes) {
    Vec columns[kLanes];
    for (std::int64_t c = 0; c < kLanes; ++c) columns[c] = column(n + c);
    Transpose(columns);
    for (std::int64_t r = 0; r < kLanes; ++r) hn::StoreU(columns[r], kF32, rows[r] + n);
  }
  for (; n + 4 <= count; n += 4) {
    StoreFourColumns(column(n), column(n + 1), column(n + 2), column(n + 3), rows, n);
  }
  return n;
}

// ---------------------------------------------------------------- functions

// The larger of the two; x if x is NaN.
HWY_INLINE Vec AtLeast(Vec floor, Vec x) {
#if HWY_ARCH_X86 && HWY_TARGET != HWY_EMU128 && HWY_TARGET != HWY_SCALAR
  return hn::Max(floor, x);  // x86 gives the second operand when one is NaN
#else
  return hn::IfThenElse(hn::Lt(x, floor), floor, x);
#endif
}

// 2^x for x ≤ 0, as softmax needs it: exactly 1 at 0, exactly 0 from −126.5 down to −inf, NaN at NaN. Relative error
// below 1.2e-7 (1 ulp) elsewhere.
HWY_INLINE Vec Exp2(Vec x) {
  // Adding this leaves round(x) + 127 in the low bits of the sum. Shifted left, these bits are the number 2^round(x),
  // or 0 if round(x) is −127.
  const Vec magic = Set(0x1.8p23F + 127.0F);
  x = AtLeast(Set(-127.0F), x);
  const Vec shifted = hn::Add(x, magic);
  const Vec f = hn::Sub(x, hn::Sub(shifted, magic));  // in [−1/2, 1/2], exact
  const Vec scale = hn::BitCast(kF32, hn::ShiftLeft<23>(hn::BitCast(U32(), shifted)));
  Vec p = Set(0x1.41fbbcp-13F);
  p = hn::MulAdd(p, f, Set(0x1.5f3e52p-10F));
  p = hn::MulAdd(p, f, Set(0x1.3b2d4cp-7F));
  p = hn::MulAdd(p, f, Set(0x1.c6aee8p-5F));
  p = hn::MulAdd(p, f, Set(0x1.ebfbdcp-3F));
  p = hn::MulAdd(p, f, Set(0x1.62e430p-1F));
  p = hn::MulAdd(p, f, Set(1.0F));
  return hn::Mul(p, scale);
}

// tanh(x): an odd polynomial near 0, elsewhere ±(1 − e) / (1 + e) with e = e^(−2|x|). Error below 2 ulp.
HWY_INLINE Vec Tanh(Vec x) {
  const Vec size = hn::Abs(x);
  const Vec z = hn::Mul(x, x);
  Vec p = Set(-0.0057049868F);
  p = hn::MulAdd(p, z, Set(0.0206390871F));
  p = hn::MulAdd(p, z, Set(-0.053739715F));
  p = hn::MulAdd(p, z, Set(0.133314422F));
  p = hn::MulAdd(p, z, Set(-0.333332819F));
  const Vec near = hn::MulAdd(hn::Mul(p, z), x, x);
  const Vec e = Exp2(hn::Mul(size, Set(-2.0F * 1.44269504F)));  // e^(−2|x|) ≤ 1: nothing overflows
  const Vec far = hn::CopySignToAbs(hn::Div(hn::Sub(Set(1.0F), e), hn::Add(Set(1.0F), e)), x);
  return hn::IfThenElse(hn::Lt(size, Set(0.625F)), near, far);
}

}  // namespace rapt::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
