// The gradient of an additive mask, a part of the plain backward pass.
#pragma once

#include <cstddef>

#include "cuda/plain.h"
#include "cuda/plain_gradient.cuh"

namespace rapt::RAPT_KERNELS {

// The bytes that mask_gradient needs at `partial`: none, an f32 for each row, or an f32 for each key of each query
// head.
std::size_t mask_gradient_bytes(const Arguments& arguments, const MaskGradientTerm& mask);
void mask_gradient(const Arguments& arguments, const Gradients& gradients, const MaskGradientTerm& mask,
                   const RowSums& sums, float* partial, const Launch& launch);

}  // namespace rapt::RAPT_KERNELS
