// q, k and v as plain arrays of double, whatever type and strides they came with.
#pragma once

#include "core/arena.h"
#include "core/problem.h"

namespace rapt::reference {

// A contiguous (B, H, L, width) array of double; (b, h, i) is one row of it.
struct Rows {
  Rows(Arena& arena, const ConstTensorView& like)
      : values(arena.take<double>(like.count())), heads(like.size(1)), length(like.size(2)), width(like.size(3)) {}

  std::span<double> operator()(std::int64_t b, std::int64_t h, std::int64_t i) const {
    return values.subspan(static_cast<std::size_t>(((b * heads + h) * length + i) * width),
                          static_cast<std::size_t>(width));
  }

  std::span<double> values;
  std::int64_t heads, length, width;
};

struct Inputs {
  Inputs(Arena& arena, const AttentionProblem& problem)
      : query(arena, problem.query), key(arena, problem.key), value(arena, problem.value) {}

  // Reads each query, and each key that exists. Memory past a key length is not touched.
  void read(const AttentionProblem& problem) const;

  Rows query, key, value;
};

// Rounds a whole (B, H, L, width) array into a tensor: the only rounding there is.
void write(const Rows& rows, const TensorView& to);

}  // namespace rapt::reference
