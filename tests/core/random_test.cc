#include "rapt/random.h"

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <set>

#include "gtest/gtest.h"

namespace rapt {
namespace {

struct KnownAnswer {
  PhiloxCounter counter;
  PhiloxKey key;
  PhiloxCounter answer;
};

// The three lines "philox4x32 10" of tests/kat_vectors in the authors' Random123 distribution (v1.14.0). The third
// takes its words from the hexadecimal digits of pi.
constexpr std::array<KnownAnswer, 3> kPublished{{
    {{0x00000000, 0x00000000, 0x00000000, 0x00000000},
     {0x00000000, 0x00000000},
     {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
    {{0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff},
     {0xffffffff, 0xffffffff},
     {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
    {{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344},
     {0xa4093822, 0x299f31d0},
     {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
}};

TEST(Random, PhiloxGivesItsPublishedKnownAnswers) {
  for (const KnownAnswer& known : kPublished) EXPECT_EQ(philox4x32_10(known.counter, known.key), known.answer);
}

TEST(Random, PhiloxWorksAtCompileTime) {
  static_assert(philox4x32_10(kPublished[0].counter, kPublished[0].key) == kPublished[0].answer);
  static_assert(philox4x32_10(kPublished[1].counter, kPublished[1].key) == kPublished[1].answer);
  static_assert(philox4x32_10(kPublished[2].counter, kPublished[2].key) == kPublished[2].answer);
}

TEST(Random, AKeyIsTheSeedLowHalfFirst) {
  static_assert(philox_key(0) == PhiloxKey{0, 0});
  static_assert(philox_key(1) == PhiloxKey{1, 0});
  static_assert(philox_key(0x0123456789abcdefU) == PhiloxKey{0x89abcdefU, 0x01234567U});
  static_assert(philox_key(~std::uint64_t{0}) == PhiloxKey{0xffffffffU, 0xffffffffU});
  EXPECT_EQ(philox_key(0x299f31d0a4093822U), kPublished[2].key);
}

TEST(Random, TheSameCounterAndKeyGiveTheSameBits) {
  EXPECT_EQ(philox4x32_10({1, 2, 3, 4}, philox_key(5)), philox4x32_10({1, 2, 3, 4}, philox_key(5)));
}

// For a fixed key Philox is a bijection: different counters give different bits. Different keys almost surely do, too.
TEST(Random, EveryCounterWordAndKeyWordMatters) {
  std::set<PhiloxCounter> seen;
  for (std::uint32_t value = 0; value < 1000; ++value) {
    for (std::size_t word = 0; word < 4; ++word) {
      PhiloxCounter counter{};
      counter[word] = value;
      seen.insert(philox4x32_10(counter, philox_key(0)));
    }
    seen.insert(philox4x32_10({}, {value, 0}));
    seen.insert(philox4x32_10({}, {0, value}));
  }
  EXPECT_EQ(seen.size(), 6U * 999U + 1U);
}

TEST(Random, HalfOfAllBitsAreSet) {
  std::array<int, 4> ones{};
  for (std::uint32_t index = 0; index < 10000; ++index) {
    const PhiloxCounter bits = philox4x32_10({7, 3, 1, index}, philox_key(42));
    for (std::size_t word = 0; word < 4; ++word) ones[word] += std::popcount(bits[word]);
  }
  // 320000 fair bits have a standard deviation of 283; the limit is six of them.
  for (const int count : ones) EXPECT_NEAR(count, 160000, 1700);
}

}  // namespace
}  // namespace rapt
