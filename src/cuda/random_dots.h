// Random dot products that cover every special case of the tensor core's arithmetic (tensor_core.h), for `rapt check
// --tensor-core` on the device and for the tests of the model on the CPU.
#pragma once

#include <cstdint>

#include "cuda/arguments.h"
#include "cuda/tensor_core.h"

namespace rapt::cuda {

enum class DotKind : std::uint8_t {
  normal,              // about normally distributed
  any_finite,          // any finite bits
  near_one,            // exponents −6 … 6
  far_from_one,        // exponents −14 … 14
  denormal,            // denormal factors and accumulators
  cancelling,          // products that cancel in pairs, or with the accumulator
  one_large,           // one large product and 15 small ones
  large_accumulator,   // an accumulator so large that products lose bits or are cut off
  softmax,             // weights in [0, 1], many of them 0, times normally distributed values
  near_overflow,       // sums around the largest f32 number; in f16 only the accumulator is large
  zero_by_huge,        // zeros times huge numbers, beside small products
  not_finite,          // infinities and NaN
  one_product,         // 15 of the 16 products are 0
  zeros,               // zeros times any finite numbers: the accumulator stays as it is
  zeros_and_denormal,  // zeros times any finite numbers; the accumulator is ±0 or a denormal number
  underflow,           // sums around the smallest denormal f32 number; in f16 the smallest normal factors
};
inline constexpr int kDotKinds = 16;

inline const char* name_of(DotKind kind) {
  switch (kind) {
    case DotKind::normal: return "normal";
    case DotKind::any_finite: return "any finite bits";
    case DotKind::near_one: return "exponents -6 to 6";
    case DotKind::far_from_one: return "exponents -14 to 14";
    case DotKind::denormal: return "denormal";
    case DotKind::cancelling: return "cancelling";
    case DotKind::one_large: return "one large product";
    case DotKind::large_accumulator: return "large accumulator";
    case DotKind::softmax: return "softmax weights";
    case DotKind::near_overflow: return "near overflow";
    case DotKind::zero_by_huge: return "zero by huge";
    case DotKind::not_finite: return "inf and NaN";
    case DotKind::one_product: return "one product";
    case DotKind::zeros: return "zeros";
    case DotKind::zeros_and_denormal: return "zeros and denormal";
    case DotKind::underflow: return "underflow";
  }
  return "?";
}

// Random numbers from a seed and a position (SplitMix64).
class DotRandom {
 public:
  RAPT_HOST_DEVICE DotRandom(std::uint64_t seed, std::uint64_t position)
      : state_(seed * 0xD1342543DE82EF95ULL + position * 0x2545F4914F6CDD1DULL) {}

  RAPT_HOST_DEVICE std::uint32_t bits() {
    state_ += 0x9E3779B97F4A7C15ULL;
    std::uint64_t mixed = (state_ ^ (state_ >> 30)) * 0xBF58476D1CE4E5B9ULL;
    mixed = (mixed ^ (mixed >> 27)) * 0x94D049BB133111EBULL;
    return static_cast<std::uint32_t>((mixed ^ (mixed >> 31)) >> 16);
  }
  // A random number from first to last, both included.
  RAPT_HOST_DEVICE int between(int first, int last) {
    return first + static_cast<int>(std::uint64_t{bits()} * static_cast<std::uint32_t>(last - first + 1) >> 32);
  }
  RAPT_HOST_DEVICE bool one_in(int count) { return between(1, count) == 1; }
  // A random number, about normally distributed, with a standard deviation of 1.15 · 2^15.
  RAPT_HOST_DEVICE int normal() {
    int sum = 0;
    for (int n = 0; n < 4; ++n) sum += between(0, (1 << 16) - 1);
    return sum - (1 << 17);
  }

 private:
  std::uint64_t state_;
};

// A number with a random sign and mantissa. Half of the mantissas are all zeros or all ones, which are the likeliest to
// go wrong.
RAPT_HOST_DEVICE std::uint32_t random_number(FloatFormat format, DotRandom& random, int first_field, int last_field) {
  const int shift = 32 - 1 - bit_width(static_cast<unsigned>(2 * format.bias + 1)) -
                    format.fraction;  // 0 for f32, 16 for 16-bit formats
  const std::uint32_t sign = (random.bits() & 0x80000000U) >> shift;
  const int field =
      random.between(first_field < 0 ? 0 : first_field, last_field > 2 * format.bias ? 2 * format.bias : last_field);
  const std::uint32_t every = (1U << format.fraction) - 1;
  const int choice = random.between(0, 3);
  const std::uint32_t mantissa = choice == 0 ? every : choice == 1 ? 0 : random.bits() & every;
  return sign | static_cast<std::uint32_t>(field) << format.fraction | mantissa;
}

// Numbers with exponents first … last, limited to the normal numbers of the format.
RAPT_HOST_DEVICE std::uint32_t random_exponent(FloatFormat format, DotRandom& random, int first, int last) {
  const int field = first + format.bias;
  return random_number(format, random, field < 1 ? 1 : field, last + format.bias);
}

// One side of a dot product: 16 bf16 or f16 numbers. `left`: the numbers of A.
RAPT_HOST_DEVICE void random_side(DotKind kind, DType type, bool left, DotRandom random, std::uint16_t* numbers) {
  const FloatFormat format = format_of(type);
  const bool wide = type == DType::bf16;  // bf16 has as many exponents as f32
  const int top = 2 * format.bias;
  const std::uint32_t sign = 0x8000;
  const int odd_one = random.between(0, 15);
  std::uint32_t number = 0;
  for (int k = 0; k < 16; ++k) {
    const std::uint32_t before = number;
    const auto exponents = [&](int first, int last) { return random_exponent(format, random, first, last); };
    const auto normal = [&] { return cut_to(format, random.normal(), -15); };
    switch (kind) {
      case DotKind::normal: number = normal(); break;
      case DotKind::any_finite: number = random_number(format, random, 0, top); break;
      case DotKind::near_one: number = exponents(-6, 6); break;
      case DotKind::far_from_one: number = exponents(-14, 14); break;
      case DotKind::denormal:  // bf16: products of two denormal numbers would vanish
        number = wide && !left ? random_number(format, random, 90, 134)
                               : random_number(format, random, 0, random.one_in(2) ? 0 : 12);
        break;
      case DotKind::cancelling:
        number = k % 2 == 0 ? exponents(-4, 4) : (left ? before : before ^ sign);
        if (k % 2 == 1 && random.one_in(2)) number += random.one_in(2) ? 1U : ~0U;
        break;
      case DotKind::one_large:
        number = !left ? exponents(-2, 1) : k == odd_one ? exponents(8, 14) : exponents(-14, 0);
        break;
      case DotKind::large_accumulator: number = exponents(-5, 2); break;
      case DotKind::softmax:
        number = !left ? normal() : random.between(0, 9) < 3 ? 0 : exponents(-24, -1) & 0x7FFF;
        break;
      case DotKind::near_overflow: number = wide ? exponents(58, 63) : exponents(10, 15); break;
      case DotKind::zero_by_huge:
        if (left) {
          number = random.between(0, 9) < 6 ? random.bits() & sign : exponents(-14, -8);
        } else {
          number = random.one_in(2) ? exponents(wide ? 60 : 10, wide ? 120 : 15) : exponents(-14, -8);
        }
        break;
      case DotKind::not_finite:
        number = normal();
        if (random.one_in(40)) {
          number = (random.bits() & sign) | static_cast<std::uint32_t>(top + 1) << format.fraction;
          if (random.one_in(2)) number |= 1U << random.between(0, format.fraction - 1);
        } else if (random.one_in(30)) {
          number = random.bits() & sign;
        }
        break;
      case DotKind::one_product: number = left && k != odd_one ? 0 : exponents(-14, 14); break;
      case DotKind::zeros:
      case DotKind::zeros_and_denormal:
        number = left ? random.bits() & sign : random_number(format, random, 0, top);
        break;
      case DotKind::underflow: number = wide ? exponents(-80, -70) : exponents(-14, -10); break;
    }
    numbers[k] = static_cast<std::uint16_t>(number);
  }
}

// The bits of an accumulator, for products whose sum is `dot`.
RAPT_HOST_DEVICE std::uint32_t random_accumulator(DotKind kind, DType type, std::uint32_t dot, DotRandom random) {
  const FloatFormat f32 = kF32Format;
  const bool wide = type == DType::bf16;
  const int choice = random.between(0, 7);
  const auto exponents = [&](int first, int last) { return random_exponent(f32, random, first, last); };
  const std::uint32_t opposite = dot ^ 0x80000000U;
  switch (kind) {
    case DotKind::normal:
    case DotKind::softmax: return cut_to(f32, random.normal(), -12);
    case DotKind::any_finite:
    case DotKind::zeros: return random_number(f32, random, 0, 254);
    case DotKind::near_one: return exponents(-14, 14);
    case DotKind::far_from_one: return exponents(-28, 28);
    case DotKind::denormal: return random_number(f32, random, 0, random.one_in(3) ? 0 : wide ? 29 : 99);
    case DotKind::cancelling:  // mostly the negated sum, sometimes one unit off
      return choice < 4 ? opposite : choice == 4 ? opposite + 1 : choice == 5 ? 0 : exponents(-20, 4);
    case DotKind::one_large: return exponents(-20, 19);
    case DotKind::large_accumulator: return exponents(4, 33);
    case DotKind::near_overflow: return exponents(113, 127);
    case DotKind::zero_by_huge: return choice == 0 ? 0 : exponents(-40, -1);
    case DotKind::not_finite:
      if (!random.one_in(50)) return cut_to(f32, random.normal(), -15);
      return (random.bits() & 0x80000000U) | 0x7F800000U | (random.one_in(2) ? 0 : 1U << random.between(0, 22));
    case DotKind::one_product: return choice == 0 ? opposite : exponents(-30, 29);
    case DotKind::zeros_and_denormal:
      return choice < 2 ? static_cast<std::uint32_t>(choice) << 31
                        : (random.bits() & 0x80000000U) | (random.bits() & 0x7FFFFF) >> random.between(0, 23);
    case DotKind::underflow: return choice < 6 ? 0 : (random.bits() & 0x80000003U);
  }
  return 0;
}

}  // namespace rapt::cuda
