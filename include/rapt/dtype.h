// Element types: their names, their sizes, and the two 16-bit floats with correctly rounded conversions.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <string_view>

#pragma GCC visibility push(default)
namespace rapt {

// i8 stores quantized keys and values; their dequantization scales are separate (AttentionOptions::key_scales).
enum class DType : std::uint8_t { f32, f64, bf16, f16, boolean, i8 };

constexpr std::size_t size_of(DType dtype) {
  switch (dtype) {
    case DType::f32: return 4;
    case DType::f64: return 8;
    case DType::bf16:
    case DType::f16: return 2;
    case DType::boolean:
    case DType::i8: return 1;
  }
  return 0;
}

constexpr std::string_view name_of(DType dtype) {
  switch (dtype) {
    case DType::f32: return "f32";
    case DType::f64: return "f64";
    case DType::bf16: return "bf16";
    case DType::f16: return "f16";
    case DType::boolean: return "bool";
    case DType::i8: return "i8";
  }
  return "?";
}

constexpr bool is_float(DType dtype) { return dtype != DType::boolean && dtype != DType::i8; }

namespace detail {

// Rounds a wider float, given as its bits, to a narrower format with `exponent` and `mantissa` bits: to nearest, ties
// to even, subnormals kept, overflow to infinity, NaN quiet. One routine serves both 16-bit formats from both wider
// ones, so no value is ever rounded twice.
template <int kWideExponent, int kWideMantissa, int kExponent, int kMantissa>
constexpr std::uint16_t round_to_16_bits(std::uint64_t wide) {
  constexpr std::uint64_t kOne = 1;
  constexpr int kWideBias = (1 << (kWideExponent - 1)) - 1;
  constexpr int kBias = (1 << (kExponent - 1)) - 1;
  constexpr std::uint64_t kInfinity = ((kOne << kExponent) - 1) << kMantissa;

  const std::uint64_t sign = (wide >> (kWideExponent + kWideMantissa)) << 15;
  const auto wide_exponent = static_cast<int>((wide >> kWideMantissa) & ((kOne << kWideExponent) - 1));
  std::uint64_t significand = wide & ((kOne << kWideMantissa) - 1);

  if (wide_exponent == (1 << kWideExponent) - 1) {  // infinity or NaN: keep the leading bits of a NaN, make it quiet
    const std::uint64_t payload =
        significand == 0 ? 0 : ((significand >> (kWideMantissa - kMantissa)) | (kOne << (kMantissa - 1)));
    return static_cast<std::uint16_t>(sign | kInfinity | payload);
  }
  if (wide_exponent != 0) significand |= kOne << kWideMantissa;  // the leading one of a normal number

  // The right shift of the significand. A result below the normal range is shifted further and loses the leading one.
  const int exponent = (wide_exponent == 0 ? 1 : wide_exponent) - kWideBias + kBias;
  const int shift = kWideMantissa - kMantissa + (exponent < 1 ? 1 - exponent : 0);
  if (shift > kWideMantissa + 1) return static_cast<std::uint16_t>(sign);  // less than half the smallest subnormal

  std::uint64_t rounded = significand >> shift;
  const std::uint64_t rest = significand & ((kOne << shift) - 1);
  const std::uint64_t half = kOne << (shift - 1);
  if (rest > half || (rest == half && (rounded & 1) != 0)) ++rounded;

  // Adding (not or-ing) the exponent lets a carry out of the significand raise it, up to infinity.
  const std::uint64_t base = exponent < 1 ? 0 : static_cast<std::uint64_t>(exponent - 1) << kMantissa;
  const std::uint64_t magnitude = base + rounded;
  return static_cast<std::uint16_t>(sign | (magnitude < kInfinity ? magnitude : kInfinity));
}

}  // namespace detail

// The upper half of an f32: 8 exponent bits, 7 mantissa bits.
struct bfloat16 {
  std::uint16_t bits = 0;

  bfloat16() = default;
  constexpr explicit bfloat16(float value)
      : bits(detail::round_to_16_bits<8, 23, 8, 7>(std::bit_cast<std::uint32_t>(value))) {}
  constexpr explicit bfloat16(double value)
      : bits(detail::round_to_16_bits<11, 52, 8, 7>(std::bit_cast<std::uint64_t>(value))) {}
  constexpr explicit operator float() const { return std::bit_cast<float>(std::uint32_t{bits} << 16); }
  constexpr explicit operator double() const { return static_cast<double>(static_cast<float>(*this)); }
};

// IEEE 754 binary16: 5 exponent bits, 10 mantissa bits.
struct float16 {
  std::uint16_t bits = 0;

  float16() = default;
  constexpr explicit float16(float value)
      : bits(detail::round_to_16_bits<8, 23, 5, 10>(std::bit_cast<std::uint32_t>(value))) {}
  constexpr explicit float16(double value)
      : bits(detail::round_to_16_bits<11, 52, 5, 10>(std::bit_cast<std::uint64_t>(value))) {}
  constexpr explicit operator float() const {
    const std::uint32_t sign = std::uint32_t{bits & 0x8000U} << 16;
    const std::uint32_t exponent = (bits >> 10) & 0x1FU;
    const std::uint32_t mantissa = bits & 0x3FFU;
    if (exponent == 0) {  // zero or subnormal: mantissa · 2^-24, exact in f32
      const float magnitude = static_cast<float>(mantissa) * 0x1p-24F;
      return std::bit_cast<float>(sign | std::bit_cast<std::uint32_t>(magnitude));
    }
    if (exponent == 31) return std::bit_cast<float>(sign | 0x7F800000U | (mantissa << 13));
    return std::bit_cast<float>(sign | ((exponent + 112) << 23) | (mantissa << 13));
  }
  constexpr explicit operator double() const { return static_cast<double>(static_cast<float>(*this)); }
};

static_assert(sizeof(bfloat16) == 2 && sizeof(float16) == 2);

// The DType of a C++ element type: dtype_of<float> == DType::f32.
template <class T>
inline constexpr DType dtype_of = [] {
  static_assert(sizeof(T) == 0, "rapt: element types are float, double, bfloat16, float16, bool and std::int8_t");
  return DType::f32;
}();
template <>
inline constexpr DType dtype_of<float> = DType::f32;
template <>
inline constexpr DType dtype_of<double> = DType::f64;
template <>
inline constexpr DType dtype_of<bfloat16> = DType::bf16;
template <>
inline constexpr DType dtype_of<float16> = DType::f16;
template <>
inline constexpr DType dtype_of<bool> = DType::boolean;
template <>
inline constexpr DType dtype_of<std::int8_t> = DType::i8;

}  // namespace rapt
#pragma GCC visibility pop
