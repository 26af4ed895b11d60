// The model of the tensor core (cuda/tensor_core.h) against results derived by hand, and against a second model that
// computes with exact doubles.

#include "cuda/tensor_core.h"

#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "cuda/random_dots.h"
#include "gtest/gtest.h"

namespace rapt::cuda {
namespace {

struct Product {
  double a = 0.0, b = 0.0;
};

std::uint16_t bits_of(DType type, double value) {
  return type == DType::bf16 ? bfloat16(value).bits : float16(value).bits;
}
double number_of(DType type, std::uint16_t bits) {
  if (type == DType::f16) return static_cast<double>(std::bit_cast<float16>(bits));
  return static_cast<double>(std::bit_cast<bfloat16>(bits));
}

using Side = std::array<std::uint16_t, 16>;

std::uint32_t model(DType type, const Side& a, const Side& b, std::uint32_t c) {
  std::array<Factor, 16> left, right;
  for (std::size_t k = 0; k < 16; ++k) left[k] = factor_of(type, a[k]), right[k] = factor_of(type, b[k]);
  return add_products(left.data(), right.data(), c);
}

// c plus the products; products that are not given are 0 · 0.
float sum(DType type, float c, const std::vector<Product>& products) {
  Side a{}, b{};
  for (std::size_t k = 0; k < products.size(); ++k) {
    a[k] = bits_of(type, products[k].a), b[k] = bits_of(type, products[k].b);
    EXPECT_EQ(number_of(type, a[k]), products[k].a) << "not a number of this type";
    EXPECT_EQ(number_of(type, b[k]), products[k].b) << "not a number of this type";
  }
  return std::bit_cast<float>(model(type, a, b, std::bit_cast<std::uint32_t>(c)));
}

std::vector<Product> times(std::size_t count, Product product) { return std::vector<Product>(count, product); }
std::vector<Product> operator+(std::vector<Product> some, const std::vector<Product>& more) {
  some.insert(some.end(), more.begin(), more.end());
  return some;
}

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kLargest = std::numeric_limits<float>::max();
constexpr float kSmallest = std::numeric_limits<float>::denorm_min();

class TensorCore : public testing::TestWithParam<DType> {
 protected:
  DType type() const { return GetParam(); }
  float sum(float c, const std::vector<Product>& products) const { return cuda::sum(type(), c, products); }
};

TEST_P(TensorCore, AddsSmallNumbersExactly) {
  EXPECT_EQ(sum(0.0F, {}), 0.0F);
  EXPECT_EQ(sum(0.0F, {{1, 1}}), 1.0F);
  EXPECT_EQ(sum(-7.0F, {{2, 3}, {-4, 0.5}, {1.5, 1.5}}), -0.75F);
  EXPECT_EQ(sum(0.5F, times(16, {3, 5})), 240.5F);
}

// Next to 2^24 the last bit that is kept is 2^-1; smaller bits are cut off from each term separately.
TEST_P(TensorCore, CutsEveryTermAtTwentyFiveBitsBelowTheLargest) {
  EXPECT_EQ(sum(0x1p24F, times(16, {1, 0.5})), 0x1p24F + 8);
  EXPECT_EQ(sum(0x1p24F, times(16, {1, 0.25})), 0x1p24F);
  EXPECT_EQ(sum(0x1p24F, times(16, {1, 0.75})), 0x1p24F + 8);
  EXPECT_EQ(sum(0x1p24F, times(16, {1, -0.75})), 0x1p24F - 8) << "towards zero, not down";
  EXPECT_EQ(sum(-0x1p24F, times(16, {1, -0.75})), -(0x1p24F + 8));
}

TEST_P(TensorCore, CutsAnAccumulatorThatIsSmallerThanTheProducts) {
  // Next to 2^12 · 2^12, the last bit that is kept is 2^-1.
  EXPECT_EQ(sum(0.75F, {{0x1p12, 0x1p12}, {-0x1p12, 0x1p12}}), 0.5F);
  EXPECT_EQ(sum(-0.25F, {{0x1p12, 0x1p12}, {-0x1p12, 0x1p12}}), 0.0F);
}

// The sum 1 + 3 · 2^-25 lies between 1 and 1 + 2^-23, nearer to the latter.
TEST_P(TensorCore, CutsTheSumInsteadOfRounding) {
  EXPECT_EQ(sum(1.0F, {{0x1.8p-12, 0x1p-12}}), 1.0F);
  EXPECT_EQ(sum(-1.0F, {{-0x1.8p-12, 0x1p-12}}), -1.0F);
  EXPECT_EQ(sum(1.0F, {{0x1p-12, 0x1p-11}}), 1.0F + 0x1p-23F);
}

// The product 1.5 · 1.5 = 2.25 counts with the exponent 0, so bits down to 2^-25 are kept, and eight terms of 2^-25 add
// up to 2^-22, the last bit of 2.25 in f32.
TEST_P(TensorCore, DoesNotNormalizeProducts) {
  EXPECT_EQ(sum(0.0F, times(1, {1.5, 1.5}) + times(8, {0x1p-12, 0x1p-13})), 2.25F + 0x1p-22F);
  EXPECT_EQ(sum(2.25F, times(8, {0x1p-12, 0x1p-13})), 2.25F) << "an accumulator of 2.25 has the exponent 1";
}

TEST_P(TensorCore, IgnoresTheExponentOfAZero) {
  const double huge = type() == DType::bf16 ? 0x1p127 : 0x1p15;
  EXPECT_EQ(sum(0x1.234566p-40F, times(16, {0, huge})), 0x1.234566p-40F);
  EXPECT_EQ(sum(0x1.234566p-40F, times(16, {-0.0, huge})), 0x1.234566p-40F);
  EXPECT_EQ(sum(kSmallest, times(16, {0, huge})), kSmallest);
  EXPECT_EQ(sum(0.0F, times(15, {0, huge}) + times(1, {0x1p-10, 0x1p-13})), 0x1p-23F);
}

TEST_P(TensorCore, ASumOfZeroIsPlusZero) {
  EXPECT_FALSE(std::signbit(sum(-0.0F, {})));
  EXPECT_FALSE(std::signbit(sum(-0.0F, times(16, {-0.0, 1}))));
  EXPECT_FALSE(std::signbit(sum(-1.0F, {{1, 1}})));
  EXPECT_FALSE(std::signbit(sum(0.0F, {{-3, 2}, {2, 3}})));
}

TEST_P(TensorCore, BeyondTheLargestNumberIsInfinite) {
  // The last bit of the largest number is 2^104. With 2^103 more, the sum is cut to the largest number; with 2^104
  // more, it is infinite.
  EXPECT_EQ(sum(kLargest, {{0x1p15, 0x1p15}}), kLargest);
  if (type() == DType::f16) return;  // its products are below 2^32
  EXPECT_EQ(sum(kLargest, {{0x1p52, 0x1p51}}), kLargest);
  EXPECT_EQ(sum(kLargest, {{0x1p52, 0x1p52}}), kInfinity);
  EXPECT_EQ(sum(-kLargest, {{-0x1p52, 0x1p52}}), -kInfinity);
  EXPECT_EQ(sum(0.0F, {{0x1p64, 0x1p63}}), 0x1p127F);
  EXPECT_EQ(sum(0.0F, {{0x1p64, 0x1p64}}), kInfinity);
  EXPECT_EQ(sum(-0x1p127F, {{0x1p64, 0x1p64}}), 0x1p127F) << "a product may exceed it if the sum does not";
  EXPECT_EQ(sum(1.0F, {{0x1p127, 0x1p127}, {-0x1p127, 0x1p127}}), 0.0F) << "1 is cut off beside 2^254";
}

TEST_P(TensorCore, KeepsDenormalNumbers) {
  const double smallest = type() == DType::bf16 ? 0x1p-133 : 0x1p-24;
  EXPECT_EQ(sum(0.0F, {{smallest, 1}}), static_cast<float>(smallest));
  EXPECT_EQ(sum(0.0F, {{smallest, -1}}), static_cast<float>(-smallest));
  EXPECT_EQ(sum(3 * kSmallest, {}), 3 * kSmallest);
  EXPECT_EQ(sum(-0x1p-127F, {}), -0x1p-127F);
}

// A denormal factor counts with the exponent of the smallest normal number, which for the smallest denormal number is 7
// (bf16) or 10 (f16) more than its true exponent. So the product counts as 2^0, and 15 terms of 2^-26 are cut off.
TEST_P(TensorCore, ADenormalFactorHasTheExponentOfTheSmallestNormalNumber) {
  const bool wide = type() == DType::bf16;
  const double smallest = wide ? 0x1p-133 : 0x1p-24, power = wide ? 0x1p126 : 0x1p14;  // exponents add up to 0
  const auto product = static_cast<float>(smallest * power);
  EXPECT_EQ(sum(0.0F, times(1, {smallest, power}) + times(15, {0x1p-13, 0x1p-13})), product);
  EXPECT_EQ(sum(0.0F, times(1, {smallest, power}) + times(4, {0x1p-13, 0x1p-12})), product + 0x1p-23F);
}

TEST_P(TensorCore, UnderflowIsCutTowardsZero) {
  if (type() == DType::f16) return;  // its smallest product is 2^-48
  EXPECT_EQ(sum(0.0F, {{0x1p-75, 0x1p-74}}), kSmallest);
  EXPECT_EQ(sum(0.0F, {{0x1p-75, 0x1.8p-74}}), kSmallest);
  EXPECT_EQ(sum(0.0F, {{0x1p-75, 0x1p-75}, {0x1p-75, 0x1p-75}}), kSmallest);
  EXPECT_EQ(sum(0.0F, {{0x1p-75, 0x1p-75}}), 0.0F);
  EXPECT_FALSE(std::signbit(sum(0.0F, {{-0x1p-75, 0x1p-75}}))) << "+0, also from below";
}

// If all terms are below 2^-133, the last bit that is kept is 2^-158. So the 14 terms of 2^-159 are cut off, and the
// rest of the sum, 2^-149 − 2^-158, is less than the smallest number and is cut to 0.
TEST_P(TensorCore, CutsNoLowerThanTheLeastExponent) {
  if (type() == DType::f16) return;  // its smallest product is 2^-48
  const std::vector<Product> below = {{0x1p-75, 0x1p-74}, {-0x1p-79, 0x1p-79}};
  EXPECT_EQ(sum(0.0F, below + times(14, {0x1p-80, 0x1p-79})), 0.0F);
  EXPECT_EQ(sum(0.0F, below + times(14, {0x1p-79, 0x1p-79})), kSmallest);
}

TEST_P(TensorCore, NotFiniteNumbers) {
  const auto bits = [&](float c, const std::vector<Product>& products) {
    return std::bit_cast<std::uint32_t>(sum(c, products));
  };
  constexpr double kInf = std::numeric_limits<double>::infinity();
  constexpr std::uint32_t kNan = 0x7FFFFFFF;
  EXPECT_EQ(sum(1.0F, {{kInf, 2}}), kInfinity);
  EXPECT_EQ(sum(1.0F, {{kInf, -2}}), -kInfinity);
  EXPECT_EQ(sum(1.0F, {{-kInf, -kInf}}), kInfinity);
  EXPECT_EQ(sum(-kInfinity, {{1, 1}}), -kInfinity);
  EXPECT_EQ(bits(1.0F, {{kInf, 0}}), kNan);
  EXPECT_EQ(bits(1.0F, {{0, -kInf}}), kNan);
  EXPECT_EQ(bits(1.0F, {{kInf, 1}, {-kInf, 1}}), kNan);
  EXPECT_EQ(bits(-kInfinity, {{kInf, 1}}), kNan);
  EXPECT_EQ(bits(std::bit_cast<float>(0xFF800001U), {{1, 1}}), kNan);

  for (const std::uint16_t nan : {bits_of(type(), NAN), static_cast<std::uint16_t>(bits_of(type(), kInf) | 0x8001)}) {
    Side a{}, b{};
    a[3] = nan;
    EXPECT_EQ(model(type(), a, b, 0), kNan) << "also by zero";
    EXPECT_EQ(model(type(), b, a, 0x7F800000), kNan) << "also beside an infinity";
  }
}

// A second model, in double: every product is exact, and so is every sum of terms that were cut.
class Exact {
 public:
  explicit Exact(DType type) : type_(type) {}

  std::uint32_t operator()(const Side& a, const Side& b, std::uint32_t c) const {
    const auto start = static_cast<double>(std::bit_cast<float>(c));
    std::vector<double> terms = {start};
    std::vector<int> exponents = {exponent(start, -126)};
    for (std::size_t k = 0; k < 16; ++k) {
      const double x = number_of(type_, a[k]), y = number_of(type_, b[k]);
      terms.push_back(x * y);
      exponents.push_back(std::isfinite(x * y) ? exponent(x, smallest()) + exponent(y, smallest()) : 0);
    }
    double sum = 0.0;
    for (const double term : terms) sum += std::isfinite(term) ? 0.0 : term;
    if (std::isnan(sum)) return 0x7FFFFFFF;
    if (sum != 0.0) return std::bit_cast<std::uint32_t>(static_cast<float>(sum));

    int largest = kLeast;
    for (std::size_t n = 0; n < terms.size(); ++n) {
      if (terms[n] != 0.0) largest = std::max(largest, exponents[n]);
    }
    for (const double term : terms) sum += std::trunc(std::ldexp(term, 25 - largest));
    sum = std::ldexp(sum, largest - 25);
    if (std::abs(sum) >= 0x1p128) return sum > 0.0 ? 0x7F800000 : 0xFF800000;
    const double unit = std::ldexp(1.0, std::max(-149, std::ilogb(sum == 0.0 ? 1.0 : sum) - 23));
    return std::bit_cast<std::uint32_t>(static_cast<float>(std::trunc(sum / unit) * unit) + 0.0F);  // no −0
  }

 private:
  static constexpr int kLeast = -133;  // the least value of the largest exponent
  int smallest() const { return type_ == DType::bf16 ? -126 : -14; }
  static int exponent(double value, int smallest) {
    return value == 0.0 || !std::isfinite(value) ? smallest : std::max(smallest, std::ilogb(value));
  }

  DType type_;
};

TEST_P(TensorCore, AgreesWithExactSums) {
  constexpr int kDots = 3000;
  const Exact exact(type());
  for (int n = 0; n < kDotKinds; ++n) {
    const auto kind = static_cast<DotKind>(n);
    int differ = 0;
    std::string first;
    for (std::uint64_t dot = 0; dot < kDots; ++dot) {
      Side a{}, b{};
      random_side(kind, type(), true, DotRandom(1, 3 * dot), a.data());
      random_side(kind, type(), false, DotRandom(1, 3 * dot + 1), b.data());
      const std::uint32_t c = random_accumulator(kind, type(), model(type(), a, b, 0), DotRandom(1, 3 * dot + 2));
      if (model(type(), a, b, c) == exact(a, b, c)) continue;
      if (++differ == 1) first = std::to_string(dot);
    }
    EXPECT_EQ(differ, 0) << name_of(kind) << ", first: " << first;
  }
}

TEST_P(TensorCore, TheOrderOfProductsDoesNotMatter) {
  for (std::uint64_t dot = 0; dot < 500; ++dot) {
    Side a{}, b{}, a_moved{}, b_moved{};
    random_side(DotKind::far_from_one, type(), true, DotRandom(2, 2 * dot), a.data());
    random_side(DotKind::far_from_one, type(), false, DotRandom(2, 2 * dot + 1), b.data());
    for (std::size_t k = 0; k < 16; ++k) a_moved[k] = b[(5 * k + 3) % 16], b_moved[k] = a[(5 * k + 3) % 16];
    EXPECT_EQ(model(type(), a, b, 0x3F800000), model(type(), a_moved, b_moved, 0x3F800000));
  }
}

// Random dots are useful only if they reach the special cases that they are named after.
TEST_P(TensorCore, RandomDotsReachTheirCorners) {
  const auto count = [&](DotKind kind, auto is) {
    int found = 0;
    for (std::uint64_t dot = 0; dot < 2000; ++dot) {
      Side a{}, b{};
      random_side(kind, type(), true, DotRandom(3, 3 * dot), a.data());
      random_side(kind, type(), false, DotRandom(3, 3 * dot + 1), b.data());
      const std::uint32_t c = random_accumulator(kind, type(), model(type(), a, b, 0), DotRandom(3, 3 * dot + 2));
      if (is(c, model(type(), a, b, c))) ++found;
    }
    return found;
  };
  using Bits = std::uint32_t;
  const auto is_nan = [](Bits, Bits sum) { return sum == 0x7FFFFFFF; };
  const auto is_infinite = [](Bits, Bits sum) { return (sum & 0x7FFFFFFF) == 0x7F800000; };
  const auto is_denormal = [](Bits, Bits sum) { return sum != 0 && (sum & 0x7F800000) == 0; };
  const auto was_minus_zero = [](Bits c, Bits sum) { return c == 0x80000000 && sum == 0; };
  const auto is_zero = [](Bits, Bits sum) { return sum == 0; };
  const auto stays = [](Bits c, Bits sum) { return c == sum || c == 0x80000000; };
  EXPECT_GT(count(DotKind::not_finite, is_nan), 100);
  EXPECT_GT(count(DotKind::not_finite, is_infinite), 100);
  EXPECT_GT(count(DotKind::zeros_and_denormal, was_minus_zero), 100);
  EXPECT_GT(count(DotKind::zeros_and_denormal, is_denormal), 100);
  EXPECT_EQ(count(DotKind::zeros, stays), 2000);
  EXPECT_GT(count(DotKind::cancelling, is_zero), 100);
  if (type() == DType::f16) return;
  EXPECT_GT(count(DotKind::near_overflow, is_infinite), 100);
  EXPECT_GT(count(DotKind::denormal, is_denormal), 10);
  EXPECT_GT(count(DotKind::underflow, is_denormal), 100);
}

INSTANTIATE_TEST_SUITE_P(Of, TensorCore, testing::Values(DType::bf16, DType::f16),
                         [](const auto& test) { return std::string(name_of(test.param)); });

}  // namespace
}  // namespace rapt::cuda
