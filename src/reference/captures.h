// Writing weights and scores where they were asked for, and reading gradients that arrive at them.
#pragma once

#include <span>
#include <vector>

#include "reference/steps.h"

namespace rapt::reference {

// How many heads a selection names.
std::int64_t chosen_heads(const Selection& of, const AttentionProblem& problem);

// Calls visit(place) for each row of `view`, given by the offset of its first element, that stands for `row`. A mean
// has no head dimension: all chosen heads stand in the same place.
template <class Visit>
void for_each_place(const Row& row, const ConstTensorView& view, const Selection& of, const Visit& visit) {
  const int query_dim = of.mean_over_heads ? 1 : 2;
  const auto each = [](const std::vector<std::int64_t>& chosen, std::int64_t index, const auto& call) {
    if (chosen.empty()) return call(index);
    for (std::size_t n = 0; n < chosen.size(); ++n) {
      if (chosen[n] == index) call(static_cast<std::int64_t>(n));
    }
  };
  each(of.heads, row.head, [&](std::int64_t head) {
    each(of.queries, row.query(), [&](std::int64_t query) {
      const std::int64_t head_offset = of.mean_over_heads ? 0 : head * view.stride(1);
      visit(row.batch() * view.stride(0) + head_offset + query * view.stride(query_dim));
    });
  });
}

// The captures of one forward call, as seen by one worker. Call row() after each stage of each head, heads ascending,
// and finish_query() when all heads of a query are done.
class CaptureWriter {
 public:
  CaptureWriter(Arena& arena, const ForwardProblem& problem);

  void start_query();
  void row(const Row& row, Stage stage, std::span<const double> values);
  void finish_query(const Row& row);  // writes the means

 private:
  const ForwardProblem* problem_;
  std::vector<std::span<double>> means_;  // for each capture: Σ over heads of this query's row; empty where not a mean
};

}  // namespace rapt::reference
