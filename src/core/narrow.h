// Branch-free versions of the conversions in rapt/dtype.h between f32 and the 16-bit floats. They give the same result
// for every value, and loops over them vectorize.
#pragma once

#include <bit>
#include <cstdint>

#include "rapt/dtype.h"

namespace rapt {

// a < b ? yes : no, in a form that the compiler cannot turn into a branch. a and b must be below 2^31: baseline SIMD
// instruction sets compare only signed integers.
inline std::uint32_t choose_where_less(std::uint32_t a, std::uint32_t b, std::uint32_t yes, std::uint32_t no) {
  const bool less = static_cast<std::int32_t>(a) < static_cast<std::int32_t>(b);
  const std::uint32_t mask = 0U - static_cast<std::uint32_t>(less);
  return (yes & mask) | (no & ~mask);
}

inline float widen_bf16(std::uint16_t bits) { return std::bit_cast<float>(std::uint32_t{bits} << 16); }

inline float widen_f16(std::uint16_t bits) {
  const std::uint32_t sign = (std::uint32_t{bits} & 0x8000U) << 16;
  const std::uint32_t size = (std::uint32_t{bits} & 0x7FFFU) << 13;
  // Exponent and mantissa are in place; the product corrects the difference of the exponent biases.
  const auto finite = std::bit_cast<std::uint32_t>(std::bit_cast<float>(size) * 0x1p112F);
  return std::bit_cast<float>(sign | finite |
                              choose_where_less(size, 0x0F800000U, 0U, 0x7F800000U));  // infinity and NaN
}

inline std::uint16_t narrow_bf16(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t rounded = bits + 0x7FFFU + ((bits >> 16) & 1U);
  const std::uint32_t quiet = bits | 0x400000U;
  return static_cast<std::uint16_t>(choose_where_less(0x7F800000U, bits & 0x7FFFFFFFU, quiet, rounded) >> 16);
}

inline std::uint16_t narrow_f16(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t size = bits & 0x7FFFFFFFU;
  constexpr std::uint32_t kNormal = 0x38800000U;  // 2^-14, the smallest normal number
  // One ulp of 0.5F is the smallest f16 subnormal, so the sum rounds to it.
  const float small = std::bit_cast<float>(choose_where_less(size, kNormal, size, 0U)) + 0.5F;
  const std::uint32_t subnormal = std::bit_cast<std::uint32_t>(small) - 0x3F000000U;
  // Rounds half to even, with the carry going into the exponent. From 65520 on the result is infinite.
  const std::uint32_t carried = (size - (112U << 23) + 0xFFFU + ((size >> 13) & 1U)) >> 13;
  const std::uint32_t normal = choose_where_less(size, 0x477FF000U, carried, 0x7C00U);
  const std::uint32_t number = choose_where_less(size, kNormal, subnormal, normal);
  const std::uint32_t nan = 0x7E00U | ((size >> 13) & 0x3FFU);
  const std::uint32_t result = choose_where_less(0x7F800000U, size, nan, number);
  return static_cast<std::uint16_t>(((bits >> 16) & 0x8000U) | result);
}

}  // namespace rapt
