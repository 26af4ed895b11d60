// Exchange between the lanes of a warp, approximate 2^x and 1/x, and operations on pairs of 16-bit numbers. This is all
// that the softmax needs from the device; tests replace it with host functions.
#pragma once

#include <cstdint>
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "cuda/arguments.h"

namespace rapt::cuda {

// 2^x, with denormal results flushed to 0.
RAPT_DEVICE float exp2_approx(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

// 1 / x within one unit in the last place, with denormal results flushed to 0.
RAPT_DEVICE float reciprocal_approx(float x) {
  float y;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

RAPT_DEVICE float from_lane_xor(float x, int lanes) { return __shfl_xor_sync(~0U, x, lanes); }
RAPT_DEVICE bool from_lane_xor(bool x, int lanes) { return __shfl_xor_sync(~0U, static_cast<int>(x), lanes) != 0; }
RAPT_DEVICE bool any_lane(bool x) { return __any_sync(~0U, static_cast<int>(x)) != 0; }

// The element-wise maximum of two pairs of unsigned 16-bit numbers.
RAPT_DEVICE std::uint32_t max_pair(std::uint32_t a, std::uint32_t b) {
  std::uint32_t r;
  asm("max.u16x2 %0, %1, %2;" : "=r"(r) : "r"(a), "r"(b));
  return r;
}

// The 16-bit types that tensor cores multiply.
struct Bf16 {
  static constexpr DType kType = DType::bf16;
  static constexpr std::uint32_t kInfinity = 0x7F80;
  static constexpr int kFraction = 7, kBias = 127;

  RAPT_DEVICE static std::uint32_t pair(float low, float high) {
    std::uint32_t r;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(r) : "f"(high), "f"(low));
    return r;
  }
  RAPT_DEVICE static float value(std::uint32_t bits) { return __uint_as_float(bits << 16); }
};

struct F16 {
  static constexpr DType kType = DType::f16;
  static constexpr std::uint32_t kInfinity = 0x7C00;
  static constexpr int kFraction = 10, kBias = 15;

  RAPT_DEVICE static std::uint32_t pair(float low, float high) {
    std::uint32_t r;
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(r) : "f"(high), "f"(low));
    return r;
  }
  RAPT_DEVICE static float value(std::uint32_t bits) {
    return __half2float(__ushort_as_half(static_cast<unsigned short>(bits)));
  }
};

}  // namespace rapt::cuda
