// The heads and queries that a Selection selects.
#pragma once

#include <cstdint>
#include <vector>

#include "rapt/attention.h"

namespace rapt {

// The number of selected indices; an empty list selects all.
inline std::int64_t chosen_count(const std::vector<std::int64_t>& chosen, std::int64_t all) {
  return chosen.empty() ? all : static_cast<std::int64_t>(chosen.size());
}

// Calls visit(n) for each position n of `index` in the list of selected indices.
template <class Visit>
void for_each_place(const std::vector<std::int64_t>& chosen, std::int64_t index, const Visit& visit) {
  if (chosen.empty()) return visit(index);
  for (std::size_t n = 0; n < chosen.size(); ++n) {
    if (chosen[n] == index) visit(static_cast<std::int64_t>(n));
  }
}

// Whether a stage holds weights rather than scores.
constexpr bool is_weights(Stage stage) { return stage == Stage::weights || stage == Stage::dropped_weights; }

}  // namespace rapt
