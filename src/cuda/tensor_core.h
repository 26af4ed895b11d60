// The arithmetic of Hopper's tensor cores, bit for bit.
//
// mma.sync m16n8k16 and wgmma m64nNk16 add 16 products of bf16 or f16 numbers to an f32 accumulator in one sum, which
// does not depend on the order of the products, the place in the tile, N, or where A and B come from:
//
// - The products are exact. Their exponent is the sum of the factors' exponents and is not normalized. A denormal
//   factor has the exponent of the smallest normal number.
// - Every term, the accumulator included, is cut (towards zero) to a multiple of 2^(largest exponent − 25). Zeros do
//   not count for the largest exponent. It is at least −133, so bf16 products far below the range of f32 lose bits.
// - The sum is cut to f32, denormals included. A sum beyond the largest number becomes infinite, and a sum that is cut
//   to 0 becomes +0.
// - A NaN, inf · 0 or inf − inf gives the NaN 7fffffff.
//
// `rapt check --tensor-core` compares this model with the device.
#pragma once

#include <bit>
#include <cstdint>

#include "cuda/arguments.h"

namespace rapt::cuda {

struct FloatFormat {
  int fraction = 0;  // bits of the mantissa
  int bias = 0;
};
inline constexpr FloatFormat kF32Format{23, 127};

RAPT_HOST_DEVICE constexpr FloatFormat format_of(DType type) {
  return type == DType::bf16 ? FloatFormat{7, 127} : type == DType::f16 ? FloatFormat{10, 15} : FloatFormat{23, 127};
}

RAPT_HOST_DEVICE int bit_width(std::uint64_t value) {
#if defined(__CUDA_ARCH__)
  return 64 - __clzll(static_cast<long long>(value));
#else
  return static_cast<int>(std::bit_width(value));
#endif
}

// The bits of count · 2^unit in a format, cut towards zero.
RAPT_HOST_DEVICE std::uint32_t cut_to(FloatFormat format, std::int64_t count, int unit) {
  if (count == 0) return 0;
  const std::uint32_t sign =
      count < 0 ? 1U << (format.fraction + bit_width(static_cast<unsigned>(2 * format.bias + 1))) : 0;
  const auto magnitude = static_cast<std::uint64_t>(count < 0 ? -count : count);
  const int width = bit_width(magnitude);
  const int field = width - 1 + unit + format.bias;  // the exponent as stored, if the result is normal
  if (field > 2 * format.bias) return sign | static_cast<std::uint32_t>(2 * format.bias + 1) << format.fraction;
  const int right = field > 0 ? width - 1 - format.fraction : 1 - format.bias - format.fraction - unit;
  const std::uint64_t kept = right <= 0 ? magnitude << -right : right < 64 ? magnitude >> right : 0;
  if (kept == 0) return 0;
  // A normal number's leading one adds 1 to the exponent field.
  const std::uint32_t exponent = field > 0 ? static_cast<std::uint32_t>(field - 1) << format.fraction : 0;
  return sign | (exponent + static_cast<std::uint32_t>(kept));
}

// A number as the multiplier reads it: significand · 2^(exponent − 10).
struct Factor {
  enum Kind : std::uint8_t { finite, infinite, nan };

  std::int32_t significand = 0;  // of an infinity or a NaN: ±1
  std::int16_t exponent = 0;
  Kind kind = finite;
};

// The factor that the bits of a bf16 or f16 number stand for.
RAPT_HOST_DEVICE Factor factor_of(DType type, std::uint16_t bits) {
  const FloatFormat format = format_of(type);
  const int mantissa = bits & ((1 << format.fraction) - 1), field = (bits & 0x7FFF) >> format.fraction;
  const int sign = (bits & 0x8000) != 0 ? -1 : 1;
  if (field > 2 * format.bias) return {sign, 0, mantissa != 0 ? Factor::nan : Factor::infinite};
  const int significand = field > 0 ? mantissa | 1 << format.fraction : mantissa;
  return {sign * (significand << (10 - format.fraction)),
          static_cast<std::int16_t>((field > 0 ? field : 1) - format.bias), Factor::finite};
}

// `value` · 2^-places, cut towards zero.
RAPT_HOST_DEVICE std::int64_t cut(std::int64_t value, int places) {
  if (value == 0 || places > 62) return 0;
  return value < 0 ? -(-value >> places) : value >> places;
}

// The sum if a factor or the accumulator is not finite.
RAPT_HOST_DEVICE std::uint32_t add_infinities(const Factor* a, const Factor* b, std::uint32_t c) {
  const bool c_is_infinite = (c & 0x7FFFFFFF) == 0x7F800000;
  bool nan = (c & 0x7FFFFFFF) > 0x7F800000;
  bool plus = c_is_infinite && c >> 31 == 0, minus = c_is_infinite && c >> 31 != 0;
  for (int k = 0; k < 16; ++k) {
    if (a[k].kind == Factor::finite && b[k].kind == Factor::finite) continue;
    const bool zero = a[k].significand == 0 || b[k].significand == 0;
    nan = nan || a[k].kind == Factor::nan || b[k].kind == Factor::nan || zero;
    const bool negative = (a[k].significand < 0) != (b[k].significand < 0);
    plus = plus || !negative, minus = minus || negative;
  }
  return nan || (plus && minus) ? 0x7FFFFFFF : plus ? 0x7F800000 : 0xFF800000;
}

// One k16 step: the bits of c + Σ a[k] · b[k] over 16 products. `c` holds the bits of an f32 accumulator.
RAPT_HOST_DEVICE std::uint32_t add_products(const Factor* a, const Factor* b, std::uint32_t c) {
  constexpr int kFraction = 25, kLeastExponent = -133;
  const int c_field = static_cast<int>(c >> 23 & 0xFF), c_exponent = (c_field > 0 ? c_field : 1) - 127;
  const std::int64_t c_magnitude = (c & 0x7FFFFF) | (c_field > 0 ? 0x800000 : 0);
  const std::int64_t c_significand = c >> 31 != 0 ? -c_magnitude : c_magnitude;

  bool finite = c_field < 0xFF;
  int largest = c_significand != 0 ? c_exponent : kLeastExponent;
  for (int k = 0; k < 16; ++k) {
    finite = finite && a[k].kind == Factor::finite && b[k].kind == Factor::finite;
    const int exponent = a[k].exponent + b[k].exponent;
    if (a[k].significand != 0 && b[k].significand != 0 && exponent > largest) largest = exponent;
  }
  if (!finite) return add_infinities(a, b, c);

  std::int64_t sum = cut(c_significand << (kFraction - 23), largest - c_exponent);
  for (int k = 0; k < 16; ++k) {
    const std::int64_t product = std::int64_t{a[k].significand} * b[k].significand;  // 20 bits of fraction
    sum += cut(product * (1 << (kFraction - 20)), largest - a[k].exponent - b[k].exponent);
  }
  return cut_to(kF32Format, sum, largest - kFraction);
}

}  // namespace rapt::cuda
