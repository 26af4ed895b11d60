// The elementwise kernels of a layer's steps: on every instruction set they give the bits of the plain formula.
#include "cpu/layer/layer_kernels.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include <gtest/gtest.h>

#include "cases/case.h"
#include "rapt/dtype.h"
#include "support/every_instruction_set.h"

namespace rapt::test {
namespace {

using cpu::layer_kernels;

class LayerKernels : public EveryInstructionSet {};

std::vector<float> numbers(std::int64_t count, std::uint64_t seed) {
  cases::Stream stream(seed);
  std::vector<float> list(static_cast<std::size_t>(count));
  for (float& number : list) number = static_cast<float>(4.0 * stream.uniform() - 2.0);
  return list;
}
void expect_same(const std::vector<float>& got, const std::vector<float>& wanted) {
  ASSERT_EQ(got.size(), wanted.size());
  for (std::size_t n = 0; n < got.size(); ++n) {
    ASSERT_EQ(std::bit_cast<std::uint32_t>(got[n]), std::bit_cast<std::uint32_t>(wanted[n])) << n;
  }
}

TEST_P(LayerKernels, WidenEverySixteenBits) {
  std::vector<std::uint16_t> bits(65536);
  for (std::uint32_t n = 0; n < 65536; ++n) bits[n] = static_cast<std::uint16_t>(n);
  std::vector<float> halves(65536), brains(65536), wanted_halves, wanted_brains;
  for (const std::uint16_t one : bits) {
    float16 half;
    bfloat16 brain;
    half.bits = brain.bits = one;
    wanted_halves.push_back(static_cast<float>(half));
    wanted_brains.push_back(static_cast<float>(brain));
  }
  layer_kernels().widen(bits.data(), DType::f16, halves.data(), 65536);
  layer_kernels().widen(bits.data(), DType::bf16, brains.data(), 65536);
  for (std::uint32_t n = 0; n < 65536; ++n) {
    if (std::isnan(wanted_halves[n])) {  // hardware makes a signaling NaN quiet
      ASSERT_TRUE(std::isnan(halves[n])) << n;
    } else {
      ASSERT_EQ(halves[n], wanted_halves[n]) << n;
    }
  }
  expect_same(brains, wanted_brains);
}

// Every upper half of an f32, combined with lower halves at, next to and between the ties of both formats.
TEST_P(LayerKernels, RoundAsTheTypesDo) {
  std::vector<float> values;
  for (std::uint32_t upper = 0; upper < 65536; ++upper) {
    for (const std::uint32_t lower : {0x0000U, 0x0001U, 0x0FFFU, 0x1000U, 0x1001U, 0x1FFFU, 0x2000U,
                                      0x3000U, 0x5000U, 0x7000U, 0x7FFFU, 0x8000U, 0x8001U, 0x9000U,
                                      0xB000U, 0xD000U, 0xEFFFU, 0xF000U, 0xF001U, 0xFFFFU, upper * 40503U % 65536U}) {
      values.push_back(std::bit_cast<float>((upper << 16) | lower));
    }
  }
  const auto count = static_cast<std::int64_t>(values.size());
  std::vector<std::uint16_t> halves(values.size()), brains(values.size());
  layer_kernels().narrow(values.data(), halves.data(), DType::f16, count);
  layer_kernels().narrow(values.data(), brains.data(), DType::bf16, count);
  for (std::size_t n = 0; n < values.size(); ++n) {
    ASSERT_EQ(halves[n], float16(values[n]).bits) << values[n];
    ASSERT_EQ(brains[n], bfloat16(values[n]).bits) << values[n];
  }
}

TEST_P(LayerKernels, TurnPairsByTheFormula) {
  for (const std::int64_t count : {0, 1, 3, 8, 21, 64}) {
    const std::vector<float> x = numbers(2 * count, 1), cosines = numbers(count, 2), sines = numbers(count, 3);
    std::vector<float> halves = x, wanted = x;
    for (std::int64_t n = 0; n < count; ++n) {
      const auto at = static_cast<std::size_t>(n), second = static_cast<std::size_t>(count + n);
      wanted[at] = x[at] * cosines[at] - x[second] * sines[at];
      wanted[second] = x[second] * cosines[at] + x[at] * sines[at];
    }
    layer_kernels().turn_halves(halves.data(), halves.data() + count, cosines.data(), sines.data(), count);
    expect_same(halves, wanted);
    for (const float sign : {1.0F, -1.0F}) {
      std::vector<float> neighbours = x;
      wanted = x;
      for (std::size_t n = 0; n < static_cast<std::size_t>(count); ++n) {
        const float sine = sign * sines[n];
        wanted[2 * n] = x[2 * n] * cosines[n] - x[2 * n + 1] * sine;
        wanted[2 * n + 1] = x[2 * n + 1] * cosines[n] + x[2 * n] * sine;
      }
      layer_kernels().turn_neighbours(neighbours.data(), sign, cosines.data(), sines.data(), count);
      expect_same(neighbours, wanted);
    }
  }
}

TEST_P(LayerKernels, AddAndStepByTheFormula) {
  const std::int64_t count = 53;
  const std::vector<float> g = numbers(count, 1), m = numbers(count, 2), p = numbers(count, 4);
  std::vector<float> v = numbers(count, 3);
  for (float& number : v) number = std::abs(number);
  const cpu::AdamNumbers with{0.9F, 0.1F, 0.99F, 0.01F, 0.999F, 0.02F, 1.7F, 1e-8F};
  std::vector<float> first = m, second = v, moved = p, sums = p;
  layer_kernels().adam(with, g.data(), first.data(), second.data(), moved.data(), count);
  layer_kernels().add(sums.data(), g.data(), count);
  for (std::size_t n = 0; n < g.size(); ++n) {
    const float m1 = with.keep1 * m[n] + with.take1 * g[n];
    const float v1 = with.keep2 * v[n] + with.take2 * g[n] * g[n];
    ASSERT_EQ(first[n], m1);
    ASSERT_EQ(second[n], v1);
    ASSERT_EQ(moved[n], with.kept * p[n] - with.step * m1 / (std::sqrt(v1) * with.inverse + with.tiny));
    ASSERT_EQ(sums[n], p[n] + g[n]);
  }
}

TEST_P(LayerKernels, QuantizeToNearestTiesToEven) {
  std::vector<float> x = numbers(37, 1);
  x[5] = 0.5F, x[6] = 1.5F, x[7] = -2.5F, x[8] = 200.0F, x[9] = -200.0F;
  for (const float scale : {1.0F, 0.01F, 0.0F}) {
    std::vector<std::int8_t> got(x.size(), 77);
    layer_kernels().quantize(x.data(), scale, got.data(), static_cast<std::int64_t>(x.size()));
    for (std::size_t n = 0; n < x.size(); ++n) {
      const float quotient = scale > 0.0F ? x[n] / scale : 0.0F;
      ASSERT_EQ(got[n], static_cast<std::int8_t>(std::clamp(std::nearbyint(quotient), -127.0F, 127.0F))) << n;
    }
  }
}

TEST_P(LayerKernels, FindTheLargestAndWhatIsNotFinite) {
  for (const std::size_t place : {0U, 7U, 15U, 30U, 36U}) {
    std::vector<float> x = numbers(37, 1);
    x[place] = -3.0F;
    EXPECT_EQ(layer_kernels().largest(x.data(), 37), 3.0F);
    x[place] = -std::numeric_limits<float>::infinity();
    EXPECT_TRUE(std::isinf(layer_kernels().largest(x.data(), 37)));
    x[place] = std::numeric_limits<float>::quiet_NaN();
    EXPECT_TRUE(std::isnan(layer_kernels().largest(x.data(), 37)));
  }
  EXPECT_EQ(layer_kernels().largest(nullptr, 0), 0.0F);
}

RAPT_ON_EVERY_INSTRUCTION_SET(LayerKernels);

}  // namespace
}  // namespace rapt::test
