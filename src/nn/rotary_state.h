// The state of a rotary embedding, and rotation without tensor checks.
#pragma once

#include <cstdint>
#include <vector>

#include "attention/checks.h"
#include "core/engine.h"
#include "rapt/rotary.h"

namespace rapt {

struct Rotary::State {
  // The tensors are valid and on the table's device. `checks` is for the positions.
  void rotate(const Checks& checks, const ConstTensorView& from, const TensorView& to, const RotaryPositions& given,
              bool back, const Workers& workers) const;

  std::int64_t head_size;
  RotaryPairs pairs;
  std::vector<double> frequencies;
  double attention_factor;
  std::int64_t max_positions;
  Tensor table;  // (max_positions, 2, size / 2), f32
};

}  // namespace rapt
