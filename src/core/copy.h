// Copies of host memory, element by element.
#pragma once

#include "rapt/tensor.h"

namespace rapt::core {

// Between views of one shape and any strides and types, rounded once. It looks at no device: engines call it for memory
// that they may touch.
void copy_elements(const ConstTensorView& from, const TensorView& to);

}  // namespace rapt::core
