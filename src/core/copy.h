// Copies of host memory, element by element.
#pragma once

#include "rapt/tensor.h"

namespace rapt::core {

// Copies between views of the same shape, with any strides and types; a conversion rounds once. Ignores the device,
// because engines call it for memory that they can access.
void copy_elements(const ConstTensorView& from, const TensorView& to);

}  // namespace rapt::core
