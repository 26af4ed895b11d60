// Writes the requested weights and scores, and finds the rows of captures and of upstream gradients.
#pragma once

#include <span>
#include <vector>

#include "core/selection.h"
#include "reference/steps.h"

namespace rapt::reference {

// Calls visit(place) for each row of `view` that corresponds to `row`; `place` is the offset of its first element. A
// mean has no head dimension, so all selected heads share one place.
template <class Visit>
void for_each_row_of(const ConstTensorView& view, const Selection& of, const Row& row, const Visit& visit) {
  const int query_dim = of.mean_over_heads ? 1 : 2;
  for_each_place(of.heads, row.head, [&](std::int64_t head) {
    for_each_place(of.queries, row.query(), [&](std::int64_t query) {
      const std::int64_t head_offset = of.mean_over_heads ? 0 : head * view.stride(1);
      visit(row.batch() * view.stride(0) + head_offset + query * view.stride(query_dim));
    });
  });
}

// Writes the captures of the queries that one worker computes. For each query, call start_query(), then row() after
// each stage of each head, heads ascending, then finish_query().
class CaptureWriter {
 public:
  CaptureWriter(Arena& arena, const ForwardProblem& problem);

  void start_query();
  void row(const Row& row, Stage stage, std::span<const double> values);
  void finish_query(const Row& row);  // writes the means

 private:
  const ForwardProblem* problem_;
  std::vector<std::span<double>> means_;  // for each capture: Σ over heads of this query's row; empty if not a mean
};

}  // namespace rapt::reference
