// How often the steps of a call happen, for tests that hold a call to doing each once.
#pragma once

#include <atomic>

namespace rapt::core {

struct CallCounts {
  // Validations of what a caller gave, by whose arguments they are.
  int layer = 0, attention = 0, product = 0, rotary = 0, cache = 0;
  int attention_plans = 0, product_plans = 0;
};

// Null except while a test counts.
inline constinit std::atomic<CallCounts*> call_counts = nullptr;

inline void count_call(int CallCounts::*what) {
  CallCounts* counts = call_counts.load(std::memory_order_relaxed);
  if (counts != nullptr) [[unlikely]] {
    ++(counts->*what);
  }
}

}  // namespace rapt::core
