// Selected heads and queries (cuda/plain.h) in device code.
#pragma once

#include <cstdint>

#include "cuda/arguments.h"
#include "cuda/plain.h"

namespace rapt::cuda {

RAPT_HOST_DEVICE std::int32_t list_element(const Arguments& call, std::uint32_t list, std::int32_t n) {
  return reinterpret_cast<const std::int32_t*>(call.lists.block() + list)[n];
}

// The number of selected heads or queries, out of `all`.
RAPT_HOST_DEVICE std::int32_t count_of(const Chosen& chosen, std::int32_t all) {
  return chosen.count > 0 ? chosen.count : all;
}

// The head or query at place n of the selection.
RAPT_HOST_DEVICE std::int32_t chosen_at(const Arguments& call, const Chosen& chosen, std::int32_t n) {
  return chosen.count > 0 ? list_element(call, chosen.chosen, n) : n;
}

// Calls visit(n) for each place n of the selection that holds the head or query `index`.
template <class Visit>
RAPT_HOST_DEVICE void for_each_place(const Arguments& call, const Chosen& chosen, std::int32_t index,
                                     const Visit& visit) {
  if (chosen.count == 0) return visit(index);
  for (std::int32_t n = list_element(call, chosen.first_place, index); n >= 0;
       n = list_element(call, chosen.next_place, n)) {
    visit(n);
  }
}

}  // namespace rapt::cuda
