// The lanes of a warp on the CPU, for device code that exchanges values between them.
//
// Each lane is a function call with a stack of its own. They run one after another, each as far as its next exchange.
// What the device needs besides (cuda/lanes.cuh, rounding intrinsics) is here too: include this before the headers of
// src/cuda that are to be tested.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <functional>

#include "cuda/arguments.h"

namespace rapt::test {

inline constexpr int kLanes = 32;

// Runs `body` once per lane. An exchange must be reached by all lanes or by none: it throws std::logic_error if some
// have ended.
void run_warp(const std::function<void(int lane)>& body);

// What lane `lane` ^ `mask` gives in the same exchange; only in a lane.
std::uint32_t exchange(std::uint32_t value, int mask);
// Whether any lane gives true.
bool any_gives(bool value);

}  // namespace rapt::test

namespace rapt::cuda {

inline float exp2_approx(float x) {
  const float y = std::exp2(x);
  return y < 0x1p-126F ? 0.0F : y;  // denormal numbers are flushed; NaN is not
}
inline float from_lane_xor(float x, int lanes) {
  return std::bit_cast<float>(test::exchange(std::bit_cast<std::uint32_t>(x), lanes));
}
inline bool from_lane_xor(bool x, int lanes) { return test::exchange(x ? 1 : 0, lanes) != 0; }
inline bool any_lane(bool x) { return test::any_gives(x); }
inline std::uint32_t max_pair(std::uint32_t a, std::uint32_t b) {
  return std::max(a >> 16, b >> 16) << 16 | std::max(a & 0xFFFF, b & 0xFFFF);
}

// Two floats in one register, the first in the lower half.
template <class Float>
struct PairOf {
  static constexpr DType kType = dtype_of<Float>;
  static std::uint32_t pair(float low, float high) {
    return Float(low).bits | static_cast<std::uint32_t>(Float(high).bits) << 16;
  }
  static float value(std::uint32_t bits) {
    return static_cast<float>(std::bit_cast<Float>(static_cast<std::uint16_t>(bits)));
  }
};
struct Bf16 : PairOf<bfloat16> {
  static constexpr std::uint32_t kInfinity = 0x7F80;
  static constexpr int kFraction = 7, kBias = 127;
};
struct F16 : PairOf<float16> {
  static constexpr std::uint32_t kInfinity = 0x7C00;
  static constexpr int kFraction = 10, kBias = 15;
};

// The rounding intrinsics of device code. Nothing here is contracted: the tests compile without fused operations of
// their own.
inline float __fadd_rn(float a, float b) { return a + b; }
inline float __fsub_rn(float a, float b) { return a - b; }
inline float __fmul_rn(float a, float b) { return a * b; }
inline float __fdiv_rn(float a, float b) { return a / b; }
inline float __fmaf_rn(float a, float b, float c) { return std::fma(a, b, c); }
inline float __int_as_float(int bits) { return std::bit_cast<float>(bits); }
inline float __uint_as_float(std::uint32_t bits) { return std::bit_cast<float>(bits); }
inline std::uint32_t __float_as_uint(float value) { return std::bit_cast<std::uint32_t>(value); }

}  // namespace rapt::cuda
