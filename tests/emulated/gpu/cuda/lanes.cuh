// Replaces src/cuda/lanes.cuh: a warp of tests/emulated/block.h, and what the CUDA compiler provides without an
// include.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>

#include "cuda/arguments.h"
#include "emulated/block.h"

#define __global__
#define __shared__
#define __grid_constant__
#define __launch_bounds__(...)
#define __align__(bytes) __attribute__((aligned(bytes)))

namespace rapt::cuda {

struct BlockPlace {
  unsigned x = 0;
};
struct ThreadPlace {
  struct X {
    operator unsigned() const { return static_cast<unsigned>(test::block_thread()); }  // NOLINT: as on the device
  };
  X x;
};
inline constexpr ThreadPlace threadIdx;
inline BlockPlace blockIdx, gridDim;

struct uint4 {
  std::uint32_t x, y, z, w;
};
struct float2 {
  float x, y;
};
struct float4 {
  float x, y, z, w;
};
inline uint4 make_uint4(std::uint32_t x, std::uint32_t y, std::uint32_t z, std::uint32_t w) { return {x, y, z, w}; }
inline float4 make_float4(float x, float y, float z, float w) { return {x, y, z, w}; }

// The tests compile without contraction, so each of these rounds once.
inline float __fadd_rn(float a, float b) { return a + b; }
inline float __fsub_rn(float a, float b) { return a - b; }
inline float __fmul_rn(float a, float b) { return a * b; }
inline float __fdiv_rn(float a, float b) { return a / b; }
inline float __fmaf_rn(float a, float b, float c) { return std::fma(a, b, c); }
inline float __uint_as_float(std::uint32_t bits) { return std::bit_cast<float>(bits); }
inline float __int_as_float(int bits) { return std::bit_cast<float>(bits); }
inline std::uint32_t __float_as_uint(float value) { return std::bit_cast<std::uint32_t>(value); }
inline int __float_as_int(float value) { return std::bit_cast<int>(value); }
inline int __popc(std::uint32_t bits) { return std::popcount(bits); }
inline int __ffs(int bits) { return bits == 0 ? 0 : std::countr_zero(static_cast<std::uint32_t>(bits)) + 1; }

template <class T>
T atomicAdd(T* to, T value) {
  const T before = *to;
  *to += value;
  return before;
}

template <class T>
T __shfl_sync(std::uint32_t /*mask*/, T value, int lane) {
  static_assert(sizeof(T) == 4);
  const auto all = test::exchange(std::bit_cast<std::uint32_t>(value));
  return std::bit_cast<T>(static_cast<std::uint32_t>(all[static_cast<std::size_t>(lane) % 32]));
}
template <class T>
T __shfl_xor_sync(std::uint32_t mask, T value, int lanes) {
  return __shfl_sync(mask, value, test::block_thread() % 32 ^ lanes);
}
template <class T>
T __shfl_down_sync(std::uint32_t mask, T value, int lanes) {
  const int lane = test::block_thread() % 32;
  return __shfl_sync(mask, value, lane + lanes < 32 ? lane + lanes : lane);
}
inline std::uint32_t __ballot_sync(std::uint32_t /*mask*/, int value) {
  const auto all = test::exchange(value != 0 ? 1 : 0);
  std::uint32_t bits = 0;
  for (std::size_t lane = 0; lane < all.size(); ++lane) bits |= static_cast<std::uint32_t>(all[lane]) << lane;
  return bits;
}
inline int __any_sync(std::uint32_t mask, int value) { return __ballot_sync(mask, value) != 0 ? 1 : 0; }
inline int __all_sync(std::uint32_t mask, int value) { return __ballot_sync(mask, value) == ~0U ? 1 : 0; }
inline void __syncwarp() { test::exchange(0); }
inline void __syncthreads() { test::wait_at(0, test::block_size()); }

// The functions of src/cuda/lanes.cuh.
inline float exp2_approx(float x) {
  const float y = std::exp2(x);
  return y < 0x1p-126F ? 0.0F : y;  // denormal numbers are flushed
}
inline float reciprocal_approx(float x) { return 1.0F / x; }
inline float from_lane_xor(float x, int lanes) { return __shfl_xor_sync(~0U, x, lanes); }
inline bool from_lane_xor(bool x, int lanes) { return __shfl_xor_sync(~0U, x ? 1 : 0, lanes) != 0; }
inline bool any_lane(bool x) { return __any_sync(~0U, x ? 1 : 0) != 0; }
inline std::uint32_t max_pair(std::uint32_t a, std::uint32_t b) {
  return std::max(a >> 16, b >> 16) << 16 | std::max(a & 0xFFFF, b & 0xFFFF);
}

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

}  // namespace rapt::cuda
