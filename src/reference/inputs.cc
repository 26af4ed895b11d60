#include "reference/inputs.h"

#include "core/elements.h"
#include "core/kv_rows.h"

namespace rapt::reference {

namespace {

void read_row(const ConstTensorView& from, std::int64_t offset, std::span<double> to) {
  for (std::size_t d = 0; d < to.size(); ++d) {
    to[d] = load(from.data(), from.dtype(), offset + static_cast<std::int64_t>(d) * from.stride(3));
  }
}

void read_queries(const AttentionProblem& problem, const SequenceSpan& sequence, const Rows& to) {
  const ConstTensorView& from = problem.query;
  const std::int64_t b = sequence.batch;
  for (std::int64_t h = 0; h < to.heads; ++h) {
    for (std::int64_t n = 0; n < sequence.query_count; ++n) {
      const std::int64_t i = sequence.query_begin + n;
      read_row(from, b * from.stride(0) + h * from.stride(1) + i * from.stride(2), to(b, h, i));
    }
  }
}

// Rows of k or v. An int8 number is multiplied by the dequantization scale of its row, in f32.
void read_rows(const KvRows& from, const SequenceSpan& sequence, std::int64_t h, const Rows& to) {
  for (std::int64_t j = 0; j < sequence.key_count; ++j) {
    const std::span<double> row = to(sequence.batch, h, sequence.key_begin + j);
    read_row(from.view(), from.offset(j), row);
    if (!from.scaled()) continue;
    for (double& number : row) number = static_cast<double>(static_cast<float>(number) * from.scale(j));
  }
}

}  // namespace

void Inputs::read(const AttentionProblem& problem) const {
  for (const SequenceSpan& sequence : problem.sequences) {
    read_queries(problem, sequence, query);
    for (std::int64_t h = 0; h < problem.kv_heads; ++h) {
      read_rows(KvRows::keys(problem, sequence, h), sequence, h, key);
      read_rows(KvRows::values(problem, sequence, h), sequence, h, value);
    }
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
