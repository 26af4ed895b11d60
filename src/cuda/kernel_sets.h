// The table of kernel sets, fastest first, and the choice among them.
#pragma once

#include <span>

#include "cuda/launch.h"

namespace rapt::cuda {

std::span<const KernelSet* const> all_sets();

// The set that RAPT_CUDA_KERNELS names; null if the variable is not set. Throws rapt::Error if there is no set of that
// name.
const KernelSet* forced_set();

// The first set that can compute a call, or the forced set. Throws rapt::Error if there is no such set, or if the
// forced set cannot compute the call.
const KernelSet& choose_set(const Arguments& arguments, const Launch& launch);

}  // namespace rapt::cuda
