#include "reference/captures.h"

#include <algorithm>
#include <limits>

#include "core/elements.h"

namespace rapt::reference {

namespace {

// One row of a capture, all Lk columns: keys that do not exist for this sequence have a score of −inf and a weight of
// 0.
void write_row(const Row& row, const Capture& capture, std::int64_t place, std::span<const double> values) {
  const TensorView& to = capture.to;
  const int last = to.rank() - 1;
  const double absent = is_weights(capture.stage) ? 0.0 : -std::numeric_limits<double>::infinity();
  for (std::int64_t column = 0; column < to.size(last); ++column) {
    const std::int64_t j = column - row.sequence.key_begin;
    const bool exists = j >= 0 && j < row.sequence.key_count;
    store(to.data(), to.dtype(), place + column * to.stride(last),
          exists ? values[static_cast<std::size_t>(j)] : absent);
  }
}

}  // namespace

CaptureWriter::CaptureWriter(Arena& arena, const ForwardProblem& problem) : problem_(&problem) {
  for (const Capture& capture : problem.outputs.captures) {
    means_.push_back(arena.take<double>(capture.of.mean_over_heads ? problem.key_length : 0));
  }
}

void CaptureWriter::start_query() {
  for (const std::span<double> mean : means_) std::fill(mean.begin(), mean.end(), 0.0);
}

void CaptureWriter::row(const Row& row, Stage stage, std::span<const double> values) {
  const std::span<const Capture> captures = problem_->outputs.captures;
  for (std::size_t n = 0; n < captures.size(); ++n) {
    const Capture& capture = captures[n];
    if (capture.stage != stage) continue;
    if (!capture.of.mean_over_heads) {
      for_each_row_of(capture.to, capture.of, row, [&](std::int64_t place) { write_row(row, capture, place, values); });
      continue;
    }
    const auto times =
        capture.of.heads.empty() ? 1 : std::count(capture.of.heads.begin(), capture.of.heads.end(), row.head);
    if (times == 0) continue;
    for (std::size_t j = 0; j < values.size(); ++j) means_[n][j] += static_cast<double>(times) * values[j];
  }
}

void CaptureWriter::finish_query(const Row& row) {
  const std::span<const Capture> captures = problem_->outputs.captures;
  for (std::size_t n = 0; n < captures.size(); ++n) {
    const Capture& capture = captures[n];
    if (!capture.of.mean_over_heads) continue;
    const auto heads =
        static_cast<double>(std::max<std::int64_t>(1, chosen_count(capture.of.heads, problem_->query_heads)));
    for (double& value : means_[n]) value /= heads;
    const Selection any_head = {true, {}, capture.of.queries};
    for_each_row_of(capture.to, any_head, row, [&](std::int64_t place) { write_row(row, capture, place, means_[n]); });
  }
}

}  // namespace rapt::reference
