// Elements of any type as f32: loads, and stores with one rounding to nearest.
#pragma once

#include <bit>
#include <cstdint>

#include "cuda/arguments.h"

namespace rapt::cuda {

RAPT_HOST_DEVICE float float_from_bits(std::uint32_t bits) {
#if defined(__CUDA_ARCH__)
  return __uint_as_float(bits);
#else
  return std::bit_cast<float>(bits);
#endif
}

RAPT_HOST_DEVICE float bf16_to_float(std::uint16_t bits) { return float_from_bits(std::uint32_t{bits} << 16); }

RAPT_HOST_DEVICE float f16_to_float(std::uint16_t bits) {
#if defined(__CUDA_ARCH__)
  float value;
  asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"(bits));
  return value;
#else
  return static_cast<float>(std::bit_cast<float16>(bits));
#endif
}

RAPT_HOST_DEVICE std::uint16_t float_to_bf16(float value) {
#if defined(__CUDA_ARCH__)  // in integer arithmetic, because the instruction needs sm_80
  const std::uint32_t bits = __float_as_uint(value);
  if ((bits & 0x7FFFFFFFU) > 0x7F800000U) return static_cast<std::uint16_t>((bits >> 16) | 0x40U);  // NaN, made quiet
  return static_cast<std::uint16_t>((bits + 0x7FFFU + ((bits >> 16) & 1U)) >> 16);
#else
  return bfloat16(value).bits;
#endif
}

RAPT_HOST_DEVICE std::uint16_t float_to_f16(float value) {
#if defined(__CUDA_ARCH__)
  std::uint16_t bits;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(value));
  return bits;
#else
  return float16(value).bits;
#endif
}

// Element `offset` of an array as f32; an f64 is rounded.
RAPT_HOST_DEVICE float load_float(const void* data, DType dtype, std::int64_t offset) {
  switch (dtype) {
    case DType::f32: return static_cast<const float*>(data)[offset];
    case DType::bf16: return bf16_to_float(static_cast<const std::uint16_t*>(data)[offset]);
    case DType::f16: return f16_to_float(static_cast<const std::uint16_t*>(data)[offset]);
    case DType::i8: return static_cast<float>(static_cast<const std::int8_t*>(data)[offset]);
    case DType::f64: return static_cast<float>(static_cast<const double*>(data)[offset]);
    case DType::boolean: break;
  }
  // Read as a byte, not as a bool, because memory cast to bool may hold values other than 0 and 1.
  return static_cast<const std::uint8_t*>(data)[offset] != 0 ? 1.0F : 0.0F;
}

// Whether an element is not 0; NaN is not 0.
RAPT_HOST_DEVICE bool load_truth(const void* data, DType dtype, std::int64_t offset) {
  if (dtype == DType::boolean) return static_cast<const std::uint8_t*>(data)[offset] != 0;
  if (dtype == DType::f64) return static_cast<const double*>(data)[offset] != 0.0;
  return load_float(data, dtype, offset) != 0.0F;
}

RAPT_HOST_DEVICE void store_float(void* data, DType dtype, std::int64_t offset, float value) {
  switch (dtype) {
    case DType::f32: static_cast<float*>(data)[offset] = value; return;
    case DType::bf16: static_cast<std::uint16_t*>(data)[offset] = float_to_bf16(value); return;
    case DType::f16: static_cast<std::uint16_t*>(data)[offset] = float_to_f16(value); return;
    case DType::f64: static_cast<double*>(data)[offset] = static_cast<double>(value); return;
    case DType::i8:
    case DType::boolean: return;  // no result has these types
  }
}

}  // namespace rapt::cuda
