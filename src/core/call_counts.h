// Counts the steps of a call, for tests that check that each happens once.
#pragma once

#include <atomic>

namespace rapt::core {

struct CallCounts {
  // The number of validations, by the kind of arguments, and of plans.
  int layer = 0, attention = 0, product = 0, rotary = 0, cache = 0;
  int attention_plans = 0, product_plans = 0;
};

// Null unless a test is counting.
inline constinit std::atomic<CallCounts*> call_counts = nullptr;

inline void count_call(int CallCounts::*what) {
  CallCounts* counts = call_counts.load(std::memory_order_relaxed);
  if (counts != nullptr) [[unlikely]] {
    ++(counts->*what);
  }
}

}  // namespace rapt::core
