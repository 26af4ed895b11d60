// The forward kernel of Hopper's tensor cores (cuda/rows.cc, cuda/rows.cuh) on the CPU.
//
// It is the device's own source, compiled for the host: the launch, the plan, all warps of a block with their barriers
// and stages, softmax, masks, merging and stores. Shared memory, copies and barriers are those of emulated/block.h, and
// products are computed by the model of the tensor core (cuda/tensor_core.h).
#pragma once

#include <cstdint>

#include "rapt/attention.h"

namespace rapt::test {

// The engine to request: rapt::attention then runs the emulated kernel on tensors of the CPU. The first call adds it to
// the engines of the process. It refuses, with rapt::Error, calls that the kernel does not support.
Engine emulated_rows();

// Change these to run the warps of a block in another order, or with another number of multiprocessors.
inline std::uint32_t emulated_order = 1;
inline int emulated_multiprocessors = 2;

}  // namespace rapt::test
