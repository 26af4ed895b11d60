// Converts rows of any type and stride to f32 and back, vectorised.
#if defined(RAPT_CPU_CONVERT_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef RAPT_CPU_CONVERT_INL_H
#undef RAPT_CPU_CONVERT_INL_H
#else
#define RAPT_CPU_CONVERT_INL_H
#endif

#include <algorithm>

#include "core/kv_rows.h"
#include "cpu/convert.h"
#include "cpu/vectors-inl.h"

HWY_BEFORE_NAMESPACE();
namespace rapt::cpu::HWY_NAMESPACE {

using U16 = hn::Rebind<std::uint16_t, F32>;  // half as many bits, the same number of lanes
using VecU16 = hn::Vec<U16>;

// bf16 is the upper half of an f32.
HWY_INLINE Vec FromBf16(VecU16 bits) { return hn::BitCast(kF32, hn::ShiftLeft<16>(hn::PromoteTo(U32(), bits))); }

// Rounds to nearest, ties to even; NaN stays NaN.
HWY_INLINE VecU16 ToBf16(Vec x) {
  const U32 u32;
  const auto bits = hn::BitCast(u32, x);
  const auto odd = hn::And(hn::ShiftRight<16>(bits), hn::Set(u32, 1U));
  const auto rounded = hn::Add(bits, hn::Add(hn::Set(u32, 0x7FFFU), odd));
  const auto quiet = hn::Or(bits, hn::Set(u32, 0x400000U));
  const auto is_nan = hn::RebindMask(u32, hn::IsNaN(x));
  return hn::TruncateTo(U16(), hn::ShiftRight<16>(hn::IfThenElse(is_nan, quiet, rounded)));
}

// Exact for every number, subnormals, infinities and NaN included.
HWY_INLINE Vec FromF16(VecU16 bits) {
#if HWY_TARGET <= HWY_AVX2 || HWY_ARCH_ARM_A64
  return hn::PromoteTo(kF32, hn::BitCast(hn::Rebind<hwy::float16_t, F32>(), bits));
#else
  const U32 u32;
  const auto wide = hn::PromoteTo(u32, bits);
  const auto sign = hn::ShiftLeft<16>(hn::And(wide, hn::Set(u32, 0x8000U)));
  const auto size = hn::ShiftLeft<13>(hn::And(wide, hn::Set(u32, 0x7FFFU)));
  // Exponent and mantissa are in place; only the exponent bias differs.
  const auto finite = hn::BitCast(u32, hn::Mul(hn::BitCast(kF32, size), Set(0x1p112F)));
  const auto special = hn::Gt(hn::BitCast(I32(), size), hn::Set(I32(), 0x0F7FFFFF));  // exponent 31
  const auto value = hn::IfThenElse(hn::RebindMask(u32, special), hn::Or(size, hn::Set(u32, 0x7F800000U)), finite);
  return hn::BitCast(kF32, hn::Or(sign, value));
#endif
}

// Rounds to nearest, ties to even; a NaN keeps its leading bits and becomes quiet.
HWY_INLINE VecU16 ToF16(Vec x) {
#if HWY_TARGET <= HWY_AVX2 || HWY_ARCH_ARM_A64
  return hn::BitCast(U16(), hn::DemoteTo(hn::Rebind<hwy::float16_t, F32>(), x));
#else
  const U32 u32;
  const auto constant = [&](std::uint32_t value) HWY_ATTR { return hn::Set(u32, value); };
  const auto less = [&](hn::Vec<U32> a, hn::Vec<U32> b) HWY_ATTR {  // both below 2^31
    return hn::RebindMask(u32, hn::Lt(hn::BitCast(I32(), a), hn::BitCast(I32(), b)));
  };
  const auto bits = hn::BitCast(u32, x);
  const auto size = hn::And(bits, constant(0x7FFFFFFFU));
  const auto is_small = less(size, constant(0x38800000U));  // below 2^-14, the smallest normal number
  // One ulp of 0.5 is the smallest f16 subnormal, so the addition rounds to a multiple of it.
  const auto small = hn::Add(hn::BitCast(kF32, hn::IfThenElseZero(is_small, size)), Set(0.5F));
  const auto subnormal = hn::Sub(hn::BitCast(u32, small), constant(0x3F000000U));
  // Rounds half to even, and a carry may increment the exponent. From 65520 on the result is infinite.
  const auto odd = hn::And(hn::ShiftRight<13>(size), constant(1U));
  const auto carried = hn::ShiftRight<13>(hn::Add(hn::Sub(size, constant((112U << 23) - 0xFFFU)), odd));
  const auto normal = hn::IfThenElse(less(size, constant(0x477FF000U)), carried, constant(0x7C00U));
  const auto number = hn::IfThenElse(is_small, subnormal, normal);
  const auto nan = hn::Or(constant(0x7E00U), hn::And(hn::ShiftRight<13>(size), constant(0x3FFU)));
  const auto result = hn::IfThenElse(less(constant(0x7F800000U), size), nan, number);
  return hn::TruncateTo(U16(), hn::Or(hn::And(hn::ShiftRight<16>(bits), constant(0x8000U)), result));
#endif
}

// Loads `count` elements from `offset` on, `stride` apart. Exact for the 16-bit types.
inline void LoadRow(const ConstTensorView& view, std::int64_t offset, std::int64_t stride, std::int64_t count,
                    float* HWY_RESTRICT to) {
  if (stride == 1 && view.dtype() == DType::f32) {
    std::copy_n(static_cast<const float*>(view.data()) + offset, count, to);
    return;
  }
  std::int64_t n = 0;
  const auto convert = [&](const auto& from_bits) HWY_ATTR {
    const auto* from = static_cast<const std::uint16_t*>(view.data()) + offset;
    for (; n + kLanes <= count; n += kLanes) hn::StoreU(from_bits(hn::LoadU(U16(), from + n)), kF32, to + n);
  };
  if (stride == 1 && view.dtype() == DType::bf16) convert([](VecU16 bits) HWY_ATTR { return FromBf16(bits); });
  if (stride == 1 && view.dtype() == DType::f16) convert([](VecU16 bits) HWY_ATTR { return FromF16(bits); });
  load_row(view.data(), view.dtype(), offset + n * stride, stride, count - n, to + n);
}

// Loads i8 elements, each times `scale`, rounded once.
inline void LoadScaledRow(const ConstTensorView& view, std::int64_t offset, float scale, std::int64_t count,
                          float* HWY_RESTRICT to) {
  const auto* from = static_cast<const std::int8_t*>(view.data()) + offset;
  const std::int64_t stride = view.stride(3);
  const hn::Rebind<std::int8_t, F32> i8;  // a quarter of the bits, the same number of lanes
  std::int64_t n = 0;
  for (; stride == 1 && n + kLanes <= count; n += kLanes) {
    const Vec numbers = hn::ConvertTo(kF32, hn::PromoteTo(I32(), hn::LoadU(i8, from + n)));
    hn::StoreU(hn::Mul(numbers, Set(scale)), kF32, to + n);
  }
  for (; n < count; ++n) to[n] = static_cast<float>(from[n * stride]) * scale;
}

// Loads the first `count` numbers of row j of k or v.
inline void LoadRow(const KvRows& rows, std::int64_t j, std::int64_t count, float* HWY_RESTRICT to) {
  if (rows.scaled()) return LoadScaledRow(rows.view(), rows.offset(j), rows.scale(j), count, to);
  LoadRow(rows.view(), rows.offset(j), rows.view().stride(3), count, to);
}

// Stores f32 numbers in the view's type, rounding once.
inline void StoreRow(const float* HWY_RESTRICT from, std::int64_t count, const TensorView& view, std::int64_t offset,
                     std::int64_t stride) {
  if (stride == 1 && view.dtype() == DType::f32) {
    std::copy_n(from, count, static_cast<float*>(view.data()) + offset);
    return;
  }
  std::int64_t n = 0;
  auto* to = static_cast<std::uint16_t*>(view.data()) + (size_of(view.dtype()) == 2 ? offset : 0);
  if (stride == 1 && view.dtype() == DType::bf16) {
    for (; n + kLanes <= count; n += kLanes) hn::StoreU(ToBf16(hn::LoadU(kF32, from + n)), U16(), to + n);
  }
  if (stride == 1 && view.dtype() == DType::f16) {
    for (; n + kLanes <= count; n += kLanes) hn::StoreU(ToF16(hn::LoadU(kF32, from + n)), U16(), to + n);
  }
  store_row(from + n, count - n, view.data(), view.dtype(), offset + n * stride, stride);
}

}  // namespace rapt::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
