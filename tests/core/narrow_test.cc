// The 16-bit conversions without branches give the bits of those in rapt/dtype.h.
#include "core/narrow.h"

#include <bit>
#include <cstdint>

#include <gtest/gtest.h>

namespace rapt::test {
namespace {

TEST(Narrow, WidensEverySixteenBits) {
  for (std::uint32_t n = 0; n < 65536; ++n) {
    float16 half;
    bfloat16 brain;
    half.bits = brain.bits = static_cast<std::uint16_t>(n);
    ASSERT_EQ(std::bit_cast<std::uint32_t>(widen_f16(half.bits)), std::bit_cast<std::uint32_t>(float(half))) << n;
    ASSERT_EQ(std::bit_cast<std::uint32_t>(widen_bf16(brain.bits)), std::bit_cast<std::uint32_t>(float(brain))) << n;
  }
}

// Every upper half of an f32, with lower halves at, beside and between the ties of both formats.
TEST(Narrow, RoundsAsTheTypesDo) {
  for (std::uint32_t upper = 0; upper < 65536; ++upper) {
    for (const std::uint32_t lower : {0x0000U, 0x0001U, 0x0FFFU, 0x1000U, 0x1001U, 0x1FFFU, 0x2000U,
                                      0x3000U, 0x5000U, 0x7000U, 0x7FFFU, 0x8000U, 0x8001U, 0x9000U,
                                      0xB000U, 0xD000U, 0xEFFFU, 0xF000U, 0xF001U, 0xFFFFU, upper * 40503U % 65536U}) {
      const auto value = std::bit_cast<float>((upper << 16) | lower);
      ASSERT_EQ(narrow_f16(value), float16(value).bits) << value;
      ASSERT_EQ(narrow_bf16(value), bfloat16(value).bits) << value;
    }
  }
}

}  // namespace
}  // namespace rapt::test
