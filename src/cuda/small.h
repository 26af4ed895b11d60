// Small kernels: copies with conversion, fills, and lists on their way to the device.
#pragma once

#include <cstddef>
#include <span>

#include "cuda/launch.h"
#include "rapt/tensor.h"

namespace rapt::cuda {

// Element by element, any strides and types, rounded once. The two must not overlap and have the same shape.
void launch_copy(const ConstTensorView& from, const TensorView& to, const Launch& launch);

void launch_fill(const TensorView& to, double value, const Launch& launch);

// Writes host memory to device memory that is aligned to 16 bytes, in stream order, as parameters of a few launches:
// the host memory is read before this returns, also while the stream is captured.
void launch_upload(std::span<const std::byte> from, std::byte* to, const Launch& launch);

}  // namespace rapt::cuda
