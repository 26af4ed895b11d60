// What a Selection chooses.
#pragma once

#include <cstdint>
#include <vector>

#include "rapt/attention.h"

namespace rapt {

// How many a list of chosen ones names; an empty list chooses all.
inline std::int64_t chosen_count(const std::vector<std::int64_t>& chosen, std::int64_t all) {
  return chosen.empty() ? all : static_cast<std::int64_t>(chosen.size());
}

// Calls visit(place) for each place at which `index` stands among the chosen.
template <class Visit>
void for_each_place(const std::vector<std::int64_t>& chosen, std::int64_t index, const Visit& visit) {
  if (chosen.empty()) return visit(index);
  for (std::size_t n = 0; n < chosen.size(); ++n) {
    if (chosen[n] == index) visit(static_cast<std::int64_t>(n));
  }
}

// Whether a stage holds weights; else it holds scores.
constexpr bool is_weights(Stage stage) { return stage == Stage::weights || stage == Stage::dropped_weights; }

}  // namespace rapt
