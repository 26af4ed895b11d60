// Taking turns: chunks of keys that several workers hold add to one dq in ascending order.
#pragma once

#include <atomic>
#include <cstdint>
#include <thread>

namespace rapt::cpu {

// Waits until it is the turn of `chunk`. Chunks are handed out in ascending order, so whoever holds an earlier one is
// at work, and the wait ends however few threads there are.
inline void await_turn(const std::atomic<std::int64_t>& turn, std::int64_t chunk) {
  constexpr int kSpins = 200;
  for (int spins = 0; turn.load(std::memory_order_acquire) < chunk; ++spins) {
    if (spins > kSpins) std::this_thread::yield();
  }
}

}  // namespace rapt::cpu
