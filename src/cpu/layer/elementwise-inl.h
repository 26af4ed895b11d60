// Elementwise loops over contiguous f32 numbers. The remainder after the last whole vector is processed one by one,
// with the same operations.
#if defined(RAPT_CPU_LAYER_ELEMENTWISE_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef RAPT_CPU_LAYER_ELEMENTWISE_INL_H
#undef RAPT_CPU_LAYER_ELEMENTWISE_INL_H
#else
#define RAPT_CPU_LAYER_ELEMENTWISE_INL_H
#endif

#include <cstdint>
#include <cstring>

#include "cpu/convert-inl.h"
#include "cpu/layer/layer_kernels.h"

HWY_BEFORE_NAMESPACE();
namespace rapt::cpu::HWY_NAMESPACE {

using F32x1 = hn::CappedTag<float, 1>;

// Calls visit(tag, n) for each whole vector of `count` numbers, then for each remaining number.
template <class Visit>
HWY_INLINE void ForEachVector(std::int64_t count, const Visit& visit) {
  std::int64_t n = 0;
  for (; n + kLanes <= count; n += kLanes) visit(kF32, n);
  for (; n < count; ++n) visit(F32x1(), n);
}

inline void AddRow(float* to, const float* x, std::int64_t count) {
  ForEachVector(count, [&](auto d, std::int64_t n)
                           HWY_ATTR { hn::StoreU(hn::Add(hn::LoadU(d, to + n), hn::LoadU(d, x + n)), d, to + n); });
}

inline void AdamStep(const AdamNumbers& with, const float* g, float* first, float* second, float* p,
                     std::int64_t count) {
  ForEachVector(count, [&](auto d, std::int64_t n) HWY_ATTR {
    const auto set = [&](float value) HWY_ATTR { return hn::Set(d, value); };
    const auto gradient = hn::LoadU(d, g + n);
    const auto m = hn::Add(hn::Mul(set(with.keep1), hn::LoadU(d, first + n)), hn::Mul(set(with.take1), gradient));
    const auto v = hn::Add(hn::Mul(set(with.keep2), hn::LoadU(d, second + n)),
                           hn::Mul(hn::Mul(set(with.take2), gradient), gradient));
    const auto below = hn::Add(hn::Mul(hn::Sqrt(v), set(with.inverse)), set(with.tiny));
    const auto step = hn::Div(hn::Mul(set(with.step), m), below);
    hn::StoreU(m, d, first + n);
    hn::StoreU(v, d, second + n);
    hn::StoreU(hn::Sub(hn::Mul(set(with.kept), hn::LoadU(d, p + n)), step), d, p + n);
  });
}

inline void TurnHalves(float* first, float* second, const float* cosines, const float* sines, std::int64_t count) {
  ForEachVector(count, [&](auto d, std::int64_t n) HWY_ATTR {
    const auto x1 = hn::LoadU(d, first + n), x2 = hn::LoadU(d, second + n);
    const auto cosine = hn::LoadU(d, cosines + n), sine = hn::LoadU(d, sines + n);
    hn::StoreU(hn::Sub(hn::Mul(x1, cosine), hn::Mul(x2, sine)), d, first + n);
    hn::StoreU(hn::Add(hn::Mul(x2, cosine), hn::Mul(x1, sine)), d, second + n);
  });
}

inline void TurnNeighbours(float* x, float sign, const float* cosines, const float* sines, std::int64_t count) {
  std::int64_t n = 0;
  for (; n + kLanes <= count; n += kLanes) {
    Vec x1, x2;
    hn::LoadInterleaved2(kF32, x + 2 * n, x1, x2);
    const Vec cosine = hn::LoadU(kF32, cosines + n), sine = hn::Mul(Set(sign), hn::LoadU(kF32, sines + n));
    hn::StoreInterleaved2(hn::Sub(hn::Mul(x1, cosine), hn::Mul(x2, sine)),
                          hn::Add(hn::Mul(x2, cosine), hn::Mul(x1, sine)), kF32, x + 2 * n);
  }
  for (; n < count; ++n) {
    const float x1 = x[2 * n], x2 = x[2 * n + 1], sine = sign * sines[n];
    x[2 * n] = x1 * cosines[n] - x2 * sine;
    x[2 * n + 1] = x2 * cosines[n] + x1 * sine;
  }
}

inline void WidenRow(const void* from, DType dtype, float* to, std::int64_t count) {
  if (dtype == DType::f32) {
    std::memcpy(to, from, static_cast<std::size_t>(count) * sizeof(float));
    return;
  }
  LoadRow(ConstTensorView(from, dtype, Dims{count}), 0, 1, count, to);
}
inline void NarrowRow(const float* from, void* to, DType dtype, std::int64_t count) {
  if (dtype == DType::f32) {
    std::memcpy(to, from, static_cast<std::size_t>(count) * sizeof(float));
    return;
  }
  StoreRow(from, count, TensorView(to, dtype, Dims{count}), 0, 1);
}

// Magnitudes are compared as integers: then NaN is above infinity, and infinity is above all other numbers.
inline float LargestOf(const float* x, std::int64_t count) {
  const U32 u32;
  auto largest = hn::Zero(u32);
  std::int64_t n = 0;
  for (; n + kLanes <= count; n += kLanes) {
    largest = hn::Max(largest, hn::BitCast(u32, hn::Abs(hn::LoadU(kF32, x + n))));
  }
  alignas(64) std::uint32_t lanes[kLanes];
  hn::Store(largest, u32, lanes);
  std::uint32_t bits = 0;
  for (const std::uint32_t size : lanes) bits = size > bits ? size : bits;
  for (; n < count; ++n) {
    std::uint32_t size;
    std::memcpy(&size, x + n, sizeof(size));
    size &= 0x7FFFFFFFU;
    bits = size > bits ? size : bits;
  }
  float result;
  std::memcpy(&result, &bits, sizeof(result));
  return result;
}

// A tiny scale is itself rounded, so x / scale may exceed ±127; it is clamped.
inline void QuantizeRow(const float* x, float scale, std::int8_t* to, std::int64_t count) {
  if (!(scale > 0.0F)) {
    std::memset(to, 0, static_cast<std::size_t>(count));
    return;
  }
  ForEachVector(count, [&](auto d, std::int64_t n) HWY_ATTR {
    const auto nearest = hn::Round(hn::Div(hn::LoadU(d, x + n), hn::Set(d, scale)));
    const auto within = hn::Min(hn::Max(nearest, hn::Set(d, -127.0F)), hn::Set(d, 127.0F));
    const hn::Rebind<std::int32_t, decltype(d)> i32;
    const hn::Rebind<std::int8_t, decltype(d)> i8;
    hn::StoreU(hn::DemoteTo(i8, hn::ConvertTo(i32, within)), i8, to + n);
  });
}

}  // namespace rapt::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
