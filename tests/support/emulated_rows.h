// The forward kernel of Hopper's tensor cores (cuda/rows.cuh) on the CPU.
//
// It is the device's own source, compiled for the host: the plan, all warps of a block with their barriers and stages,
// softmax, masks, merging and stores. Shared memory, copies and barriers are those of support/block.h, and products are
// made by the model of the tensor core (cuda/tensor_core.h).
#pragma once

#include <cstdint>

#include "cuda/arguments.h"

namespace rapt::test {

// Whether the kernel takes a call.
bool rows_can_run(const cuda::Arguments& call);

// Writes out and lse. `blocks` persistent blocks share the tiles; warps run in an order that depends on `seed`.
void run_emulated_rows(const cuda::Arguments& call, int blocks = 2, std::uint32_t seed = 1);

}  // namespace rapt::test
