// Small kernels: copies with conversion, fills, and uploads of lists to the device.
#pragma once

#include <cstddef>
#include <span>

#include "cuda/launch.h"
#include "rapt/tensor.h"

namespace rapt::cuda {

// Copies element by element, with any strides and types; a conversion rounds once. `from` and `to` have the same shape
// and must not overlap.
void launch_copy(const ConstTensorView& from, const TensorView& to, const Launch& launch);

void launch_fill(const TensorView& to, double value, const Launch& launch);

// Copies host memory, in stream order, to device memory that is aligned to 16 bytes. The bytes are passed as parameters
// of a few launches, so the host memory has been read when the function returns, even while the stream is captured.
void launch_upload(std::span<const std::byte> from, std::byte* to, const Launch& launch);

}  // namespace rapt::cuda
