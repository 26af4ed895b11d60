// The plain CUDA kernels on the CPU: the same source, compiled for warps that are loops over 32 lanes (cuda/warp.cuh).
#pragma once

#include "rapt/attention.h"

namespace rapt::test {

// The engine to request: rapt::attention and attention_backward then run the emulated kernels on tensors of the CPU.
// The first call adds it to the engines of the process.
Engine emulated_cuda();

}  // namespace rapt::test
