// The rotation itself, after validation.
#pragma once

#include <cstdint>
#include <span>

#include "core/product.h"
#include "rapt/rotary.h"

namespace rapt::nn {

// The position of token i of batch row b. Without `given` it is offset + i.
struct PositionRule {
  std::int64_t offset = 0;
  const std::int64_t* given = nullptr;
  std::int64_t row_stride = 0, token_stride = 0;  // in `given`
  std::int64_t step = 1;                          // from one token to the next, besides what `given` says

  std::int64_t at(std::int64_t b, std::int64_t i) const {
    return offset + i * step + (given == nullptr ? 0 : given[b * row_stride + i * token_stride]);
  }
};

struct RotaryProblem {
  std::span<const double> frequencies;  // (size / 2)
  double attention_factor = 1.0;
  bool back = false;  // by the negative angles
  RotaryPairs pairs = RotaryPairs::half_split;
  const float* table = nullptr;  // see fill_table
  std::int64_t table_positions = 0;
  PositionRule positions;
  ConstTensorView from;  // (B, H, L, D)
  TensorView to;         // (B, H, L, D); from's memory and strides, or memory of its own
};

void rotate(const RotaryProblem& problem, const Workers& workers);

// (positions, 2, size / 2): the cosines of a position, then its sines.
void fill_table(std::span<const double> frequencies, double attention_factor, std::int64_t positions, float* table,
                const Workers& workers);

}  // namespace rapt::nn
