// q, k and v as plain arrays of double, converted from tensors of any type and strides, paged or not.
#pragma once

#include "core/arena.h"
#include "core/problem.h"

namespace rapt::reference {

// A contiguous (B, H, L, width) array of double; (b, h, i) is one row of it.
struct Rows {
  Rows(Arena& arena, const Dims& shape)
      : values(arena.take<double>(Layout::contiguous(shape).count())),
        heads(shape[1]),
        length(shape[2]),
        width(shape[3]) {}

  std::span<double> operator()(std::int64_t b, std::int64_t h, std::int64_t i) const {
    return values.subspan(static_cast<std::size_t>(((b * heads + h) * length + i) * width),
                          static_cast<std::size_t>(width));
  }

  std::span<double> values;
  std::int64_t heads, length, width;
};

struct Inputs {
  Inputs(Arena& arena, const AttentionProblem& problem)
      : query(arena, problem.query.shape()),
        key(arena, {problem.query.size(0), problem.kv_heads, problem.key_length, problem.head_size}),
        value(arena, {problem.query.size(0), problem.kv_heads, problem.key_length, problem.value_size}) {}

  // Reads each query, and each key that exists. Memory past a key length is not touched.
  void read(const AttentionProblem& problem) const;

  Rows query, key, value;
};

// Writes a whole (B, H, L, width) array to a tensor, each number rounded once.
void write(const Rows& rows, const TensorView& to);

}  // namespace rapt::reference
