#include "reference/inputs.h"

#include "core/elements.h"

namespace rapt::reference {

namespace {

void read_rows(const ConstTensorView& from, const Rows& to, std::int64_t b, KeyRange range) {
  for (std::int64_t h = 0; h < to.heads; ++h) {
    for (std::int64_t i = range.first; i < range.last; ++i) {
      const std::int64_t row = b * from.stride(0) + h * from.stride(1) + i * from.stride(2);
      const std::span<double> values = to(b, h, i);
      for (std::int64_t d = 0; d < to.width; ++d) {
        values[static_cast<std::size_t>(d)] = load(from.data(), from.dtype(), row + d * from.stride(3));
      }
    }
  }
}

}  // namespace

void Inputs::read(const AttentionProblem& problem) const {
  for (const SequenceSpan& sequence : problem.sequences) {
    const KeyRange queries = {sequence.query_begin, sequence.query_begin + sequence.query_count};
    const KeyRange keys = {sequence.key_begin, sequence.key_begin + sequence.key_count};
    read_rows(problem.query, query, sequence.batch, queries);
    read_rows(problem.key, key, sequence.batch, keys);
    read_rows(problem.value, value, sequence.batch, keys);
  }
}

void write(const Rows& rows, const TensorView& to) {
  for (std::int64_t b = 0; b < to.size(0); ++b) {
    for (std::int64_t h = 0; h < to.size(1); ++h) {
      for (std::int64_t i = 0; i < to.size(2); ++i) {
        const std::span<const double> values = rows(b, h, i);
        const std::int64_t row = b * to.stride(0) + h * to.stride(1) + i * to.stride(2);
        for (std::int64_t d = 0; d < to.size(3); ++d) {
          store(to.data(), to.dtype(), row + d * to.stride(3), values[static_cast<std::size_t>(d)]);
        }
      }
    }
  }
}

}  // namespace rapt::reference
