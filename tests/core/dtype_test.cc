#include "rapt/dtype.h"

#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string_view>
#include <vector>

#include "gtest/gtest.h"
#include "rapt/random.h"

namespace rapt {
namespace {

// The oracle does not use the bit tricks under test: it lists all values of a format from its definition, and finds the
// nearest one by search. Differences of neighbours and their midpoints are exact in double, because the widest 16-bit
// significand has 11 bits.
class Oracle {
 public:
  Oracle(int exponent_bits, int mantissa_bits) {
    const int bias = (1 << (exponent_bits - 1)) - 1;
    const int infinity = ((1 << exponent_bits) - 1) << mantissa_bits;
    for (int bits = 0; bits < infinity; ++bits) {
      const int exponent = bits >> mantissa_bits;
      const int mantissa = bits & ((1 << mantissa_bits) - 1);
      const int significand = exponent == 0 ? mantissa : mantissa + (1 << mantissa_bits);
      values_.push_back(std::ldexp(significand, (exponent == 0 ? 1 : exponent) - bias - mantissa_bits));
    }
    // IEEE 754 rounds as if the exponent were unbounded: a result that reaches the value after the last one becomes
    // infinity.
    values_.push_back(values_.back() + (values_.back() - values_[values_.size() - 2]));
  }

  // The non-negative finite values, indexed by their bits; the last entry, after the largest finite value, represents
  // infinity.
  const std::vector<double>& values() const { return values_; }
  std::uint16_t infinity() const { return static_cast<std::uint16_t>(values_.size() - 1); }

  std::uint16_t nearest(double value) const {
    const std::uint16_t sign = std::signbit(value) ? 0x8000 : 0;
    const double magnitude = std::fabs(value);
    if (magnitude >= values_.back()) return static_cast<std::uint16_t>(sign | infinity());
    std::size_t low = 0;
    std::size_t high = values_.size() - 1;  // values_[low] <= magnitude < values_[high]
    while (high - low > 1) {
      const std::size_t middle = (low + high) / 2;
      (values_[middle] <= magnitude ? low : high) = middle;
    }
    const double midpoint = (values_[low] + values_[high]) / 2;
    const bool up = magnitude > midpoint || (magnitude == midpoint && low % 2 != 0);
    return static_cast<std::uint16_t>(sign | (up ? high : low));
  }

 private:
  std::vector<double> values_;
};

template <class T>
struct Format;

template <>
struct Format<bfloat16> {
  static constexpr int kExponentBits = 8;
  static constexpr int kMantissaBits = 7;
};

template <>
struct Format<float16> {
  static constexpr int kExponentBits = 5;
  static constexpr int kMantissaBits = 10;
};

template <class T>
const Oracle& oracle() {
  static const Oracle instance(Format<T>::kExponentBits, Format<T>::kMantissaBits);
  return instance;
}

template <class T>
T from_bits(std::uint32_t bits) {
  T value;
  value.bits = static_cast<std::uint16_t>(bits);
  return value;
}

template <class T>
bool is_nan_bits(std::uint32_t bits) {
  return (bits & 0x7FFFU) > oracle<T>().infinity();
}

template <class T>
constexpr std::uint16_t kQuietBit = 1 << (Format<T>::kMantissaBits - 1);

// Whether a conversion from `wide` agrees with the oracle. Returns a bool, because millions of EXPECT checks are slow.
template <class T, class Wide>
bool is_correctly_rounded(Wide wide) {
  const std::uint16_t bits = T(wide).bits;
  if (std::isnan(wide)) {
    const bool same_sign = ((bits & 0x8000U) != 0) == std::signbit(wide);
    return is_nan_bits<T>(bits) && (bits & kQuietBit<T>) != 0 && same_sign;
  }
  return bits == oracle<T>().nearest(static_cast<double>(wide));
}

template <class T, class Wide>
void expect_correctly_rounded(Wide wide) {
  EXPECT_TRUE((is_correctly_rounded<T>(wide)))
      << std::hexfloat << wide << " became " << T(wide).bits << ", nearest is " << oracle<T>().nearest(double{wide});
}

// The value, its neighbours on both sides, and all of them negated.
template <class T, class Wide>
void expect_correctly_rounded_around(Wide wide) {
  constexpr Wide kInfinity = std::numeric_limits<Wide>::infinity();
  for (const Wide near : {std::nextafter(wide, -kInfinity), wide, std::nextafter(wide, kInfinity)}) {
    expect_correctly_rounded<T>(near);
    expect_correctly_rounded<T>(-near);
  }
}

template <class T>
class SixteenBitFloat : public ::testing::Test {};
using SixteenBitFloats = ::testing::Types<bfloat16, float16>;
TYPED_TEST_SUITE(SixteenBitFloat, SixteenBitFloats);

TYPED_TEST(SixteenBitFloat, EveryFiniteValueWidensToWhatItsBitsMean) {
  const std::vector<double>& values = oracle<TypeParam>().values();
  for (std::uint32_t bits = 0; bits < oracle<TypeParam>().infinity(); ++bits) {
    ASSERT_EQ(static_cast<double>(from_bits<TypeParam>(bits)), values[bits]) << bits;
    ASSERT_EQ(static_cast<double>(static_cast<float>(from_bits<TypeParam>(bits))), values[bits]) << bits;
    ASSERT_EQ(static_cast<double>(from_bits<TypeParam>(bits | 0x8000U)), -values[bits]) << bits;
  }
}

TYPED_TEST(SixteenBitFloat, AllBitPatternsComeBackThroughFloatAndDouble) {
  for (std::uint32_t bits = 0; bits < 0x10000U; ++bits) {
    const auto value = from_bits<TypeParam>(bits);
    // A signalling NaN becomes quiet, and keeps its other bits.
    const std::uint32_t expected = is_nan_bits<TypeParam>(bits) ? bits | kQuietBit<TypeParam> : bits;
    ASSERT_EQ(TypeParam(static_cast<float>(value)).bits, expected) << bits;
    ASSERT_EQ(TypeParam(static_cast<double>(value)).bits, expected) << bits;
  }
}

TYPED_TEST(SixteenBitFloat, MidpointsGoToEvenAndTheirNeighboursToTheNearer) {
  const std::vector<double>& values = oracle<TypeParam>().values();
  for (std::size_t bits = 0; bits + 1 < values.size(); ++bits) {
    const double midpoint = (values[bits] + values[bits + 1]) / 2;
    expect_correctly_rounded_around<TypeParam>(midpoint);
    expect_correctly_rounded_around<TypeParam>(static_cast<float>(midpoint));
    expect_correctly_rounded_around<TypeParam>(values[bits]);
    expect_correctly_rounded_around<TypeParam>(static_cast<float>(values[bits]));
    if (this->HasFailure()) return;
  }
}

TYPED_TEST(SixteenBitFloat, RandomFloatsOfAllMagnitudesAreCorrectlyRounded) {
  std::int64_t wrong = 0;
  for (std::uint32_t block = 0; block < 500'000; ++block) {
    for (const std::uint32_t bits : philox4x32_10({block, 0, 0, 0}, philox_key(16))) {
      wrong += is_correctly_rounded<TypeParam>(std::bit_cast<float>(bits)) ? 0 : 1;
    }
  }
  EXPECT_EQ(wrong, 0);
}

TYPED_TEST(SixteenBitFloat, RandomDoublesWithinAndAroundTheRangeAreCorrectlyRounded) {
  constexpr double kHighest = Format<TypeParam>::kExponentBits == 5 ? 20.0 : 132.0;
  constexpr double kLowest = Format<TypeParam>::kExponentBits == 5 ? -30.0 : -140.0;
  std::int64_t wrong = 0;
  for (std::uint32_t block = 0; block < 1'000'000; ++block) {
    const auto words = philox4x32_10({block, 1, 0, 0}, philox_key(16));
    // First arbitrary bits, mostly far outside the range; then an arbitrary significand with an exponent close to the
    // range.
    const auto any = std::bit_cast<double>((std::uint64_t{words[0]} << 32) | words[1]);
    const double exponent = kLowest + (kHighest - kLowest) * static_cast<double>(words[2] >> 8) * 0x1p-24;
    const double inside =
        std::ldexp(1.0 + static_cast<double>(words[1]) * 0x1p-32 + static_cast<double>(words[3]) * 0x1p-52,
                   static_cast<int>(std::floor(exponent)));
    wrong += is_correctly_rounded<TypeParam>(any) ? 0 : 1;
    wrong += is_correctly_rounded<TypeParam>((words[0] & 1U) != 0 ? inside : -inside) ? 0 : 1;
  }
  EXPECT_EQ(wrong, 0);
}

TYPED_TEST(SixteenBitFloat, OverflowStartsAtTheMidpointAfterTheLargestValue) {
  const std::vector<double>& values = oracle<TypeParam>().values();
  const std::uint16_t infinity = oracle<TypeParam>().infinity();
  const auto largest = static_cast<std::uint16_t>(infinity - 1);
  const double midpoint = (values[largest] + values[infinity]) / 2;
  EXPECT_EQ(TypeParam(values[largest]).bits, largest);
  EXPECT_EQ(TypeParam(std::nextafter(midpoint, 0.0)).bits, largest);
  EXPECT_EQ(TypeParam(midpoint).bits, infinity);  // a tie: the largest value is odd
  EXPECT_EQ(TypeParam(std::nextafter(static_cast<float>(midpoint), 0.0F)).bits, largest);
  EXPECT_EQ(TypeParam(static_cast<float>(midpoint)).bits, infinity);
  EXPECT_EQ(TypeParam(-midpoint).bits, infinity | 0x8000);
  EXPECT_EQ(TypeParam(std::numeric_limits<double>::max()).bits, infinity);
  EXPECT_EQ(TypeParam(std::numeric_limits<float>::max()).bits, infinity);
  EXPECT_EQ(TypeParam(std::numeric_limits<double>::infinity()).bits, infinity);
  EXPECT_EQ(TypeParam(-std::numeric_limits<float>::infinity()).bits, infinity | 0x8000);
}

TYPED_TEST(SixteenBitFloat, SubnormalsAreKeptAndUnderflowGoesToASignedZero) {
  const double smallest = oracle<TypeParam>().values()[1];
  EXPECT_EQ(TypeParam(smallest).bits, 1);
  EXPECT_EQ(TypeParam(-smallest).bits, 0x8001);
  EXPECT_EQ(TypeParam(smallest / 2).bits, 0);  // a tie: to even
  EXPECT_EQ(TypeParam(-smallest / 2).bits, 0x8000);
  EXPECT_EQ(TypeParam(std::nextafter(smallest / 2, 1.0)).bits, 1);
  EXPECT_EQ(TypeParam(std::nextafter(smallest / 2, 0.0)).bits, 0);
  EXPECT_EQ(TypeParam(smallest * 1.5).bits, 2);
  for (const double tiny : {std::numeric_limits<double>::denorm_min(), std::numeric_limits<double>::min(), 0x1p-300}) {
    EXPECT_EQ(TypeParam(tiny).bits, 0);
    EXPECT_EQ(TypeParam(-tiny).bits, 0x8000);
  }
}

TYPED_TEST(SixteenBitFloat, ZeroKeepsItsSign) {
  EXPECT_EQ(TypeParam(0.0F).bits, 0);
  EXPECT_EQ(TypeParam(-0.0F).bits, 0x8000);
  EXPECT_EQ(TypeParam(0.0).bits, 0);
  EXPECT_EQ(TypeParam(-0.0).bits, 0x8000);
  EXPECT_TRUE(std::signbit(static_cast<float>(from_bits<TypeParam>(0x8000))));
  EXPECT_TRUE(std::signbit(static_cast<double>(from_bits<TypeParam>(0x8000))));
  EXPECT_EQ(TypeParam().bits, 0);
}

TYPED_TEST(SixteenBitFloat, NanStaysNanAlsoWhenItsPayloadLiesInTheBitsThatAreCut) {
  for (const std::uint32_t bits : {0x7F800001U, 0x7F801FFFU, 0x7FBFFFFFU, 0x7FC00000U, 0x7FFFFFFFU, 0xFF800001U}) {
    expect_correctly_rounded<TypeParam>(std::bit_cast<float>(bits));
  }
  for (const std::uint64_t bits :
       {0x7FF0000000000001U, 0x7FF00000FFFFFFFFU, 0x7FF8000000000000U, 0xFFF0000000000001U}) {
    expect_correctly_rounded<TypeParam>(std::bit_cast<double>(bits));
  }
}

TYPED_TEST(SixteenBitFloat, ConversionsWorkAtCompileTime) {
  static_assert(static_cast<float>(TypeParam(1.5F)) == 1.5F);
  static_assert(static_cast<double>(TypeParam(-0.375)) == -0.375);
  static_assert(TypeParam(1.0F).bits == TypeParam(1.0).bits);
}

// Rounded to float first, each of these would become a tie of the 16-bit format, and then be rounded in the wrong
// direction.
TYPED_TEST(SixteenBitFloat, ADoubleIsRoundedOnceNotThroughFloat) {
  const std::vector<double>& values = oracle<TypeParam>().values();
  int differ = 0;
  for (std::size_t bits = 0; bits + 1 < values.size(); ++bits) {
    const double midpoint = (values[bits] + values[bits + 1]) / 2;
    const double nudged = bits % 2 == 0 ? std::nextafter(midpoint, INFINITY) : std::nextafter(midpoint, 0.0);
    const std::size_t expected = bits % 2 == 0 ? bits + 1 : bits;
    ASSERT_EQ(TypeParam(nudged).bits, expected) << bits;
    differ += TypeParam(static_cast<float>(nudged)).bits == expected ? 0 : 1;
  }
  EXPECT_EQ(differ, static_cast<int>(values.size()) - 1) << "the examples must be ones that double rounding gets wrong";
}

TEST(Float16, HasTheWellKnownValues) {
  EXPECT_EQ(float16(1.0F).bits, 0x3C00);
  EXPECT_EQ(float16(-2.0F).bits, 0xC000);
  EXPECT_EQ(float16(65504.0F).bits, 0x7BFF);
  EXPECT_EQ(float16(65519.996F).bits, 0x7BFF);
  EXPECT_EQ(float16(65520.0F).bits, 0x7C00);
  EXPECT_EQ(float16(0x1p-14F).bits, 0x0400);
  EXPECT_EQ(float16(0x1p-24F).bits, 0x0001);
  EXPECT_EQ(float16(1.0 / 3.0).bits, 0x3555);
}

TEST(BFloat16, HasTheWellKnownValues) {
  EXPECT_EQ(bfloat16(1.0F).bits, 0x3F80);
  EXPECT_EQ(bfloat16(-2.0F).bits, 0xC000);
  EXPECT_EQ(bfloat16(3.14159265F).bits, 0x4049);
  EXPECT_EQ(bfloat16(0x1.FEp127F).bits, 0x7F7F);
  EXPECT_EQ(bfloat16(0x1p-126F).bits, 0x0080);
  EXPECT_EQ(bfloat16(0x1p-133F).bits, 0x0001);
}

TEST(DTypes, EveryTypeHasANameASizeAndAnElementType) {
  EXPECT_EQ(name_of(DType::f32), "f32");
  EXPECT_EQ(name_of(DType::f64), "f64");
  EXPECT_EQ(name_of(DType::bf16), "bf16");
  EXPECT_EQ(name_of(DType::f16), "f16");
  EXPECT_EQ(name_of(DType::boolean), "bool");
  EXPECT_EQ(name_of(DType::i8), "i8");
  EXPECT_EQ(size_of(dtype_of<float>), sizeof(float));
  EXPECT_EQ(size_of(dtype_of<double>), sizeof(double));
  EXPECT_EQ(size_of(dtype_of<bfloat16>), sizeof(bfloat16));
  EXPECT_EQ(size_of(dtype_of<float16>), sizeof(float16));
  EXPECT_EQ(size_of(dtype_of<bool>), sizeof(bool));
  EXPECT_EQ(size_of(dtype_of<std::int8_t>), sizeof(std::int8_t));
  EXPECT_TRUE(is_float(DType::bf16));
  EXPECT_FALSE(is_float(DType::boolean));
  EXPECT_FALSE(is_float(DType::i8));
}

#if defined(__FLT16_MANT_DIG__) && defined(__SSE2__) && defined(__GNUC__) && !defined(__clang__)
// Compares with the compiler's own type, if it has one.
TEST(Float16, AgreesWithTheCompilersOwnType) {
  __extension__ using Native = _Float16;
  const auto bits_of = [](Native value) { return std::bit_cast<std::uint16_t>(value); };
  std::int64_t wrong = 0;
  for (std::uint32_t block = 0; block < 250'000; ++block) {
    const auto words = philox4x32_10({block, 2, 0, 0}, philox_key(16));
    for (const std::uint32_t word : words) {
      const auto single = std::bit_cast<float>(word);
      if (!std::isnan(single)) wrong += float16(single).bits == bits_of(static_cast<Native>(single)) ? 0 : 1;
      // Biased exponents of 991 to 1054 span the range; the low bits decide ties.
      const std::uint64_t wide =
          ((991ULL + (word >> 26)) << 52) | (std::uint64_t{word & 0x3FFFFFFU} << 26) | (word % 3);
      const auto twice = std::bit_cast<double>(wide);
      wrong += float16(twice).bits == bits_of(static_cast<Native>(twice)) ? 0 : 1;
    }
  }
  EXPECT_EQ(wrong, 0);
}
#endif

}  // namespace
}  // namespace rapt
