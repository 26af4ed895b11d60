// Counter-based random numbers: Philox 4x32-10 (Salmon, Moraes, Dror and Shaw, SC'11).
//
// A pure function from a counter and a key to 128 random bits. There is no state, so the bits that dropout uses for a
// weight depend only on the seed and the position of that weight: not on threads, batch size, or the order of calls.
#pragma once

#include <array>
#include <cstdint>

#pragma GCC visibility push(default)
namespace rapt {

using PhiloxCounter = std::array<std::uint32_t, 4>;
using PhiloxKey = std::array<std::uint32_t, 2>;

constexpr PhiloxCounter philox4x32_10(PhiloxCounter counter, PhiloxKey key) {
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t product0 = std::uint64_t{0xD2511F53U} * counter[0];
    const std::uint64_t product1 = std::uint64_t{0xCD9E8D57U} * counter[2];
    counter = {static_cast<std::uint32_t>(product1 >> 32) ^ counter[1] ^ key[0], static_cast<std::uint32_t>(product1),
               static_cast<std::uint32_t>(product0 >> 32) ^ counter[3] ^ key[1], static_cast<std::uint32_t>(product0)};
    key[0] += 0x9E3779B9U;
    key[1] += 0xBB67AE85U;
  }
  return counter;
}

// The key for a 64-bit seed: low half first.
constexpr PhiloxKey philox_key(std::uint64_t seed) {
  return {static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32)};
}

}  // namespace rapt
#pragma GCC visibility pop
