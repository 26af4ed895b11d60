// What a GPU does for tensors: memory, and the steps of a layer that it supports so far.
#pragma once

#include "core/layer_ops.h"
#include "core/memory_ops.h"

namespace rapt::cuda {

extern const MemoryOps kMemory;
extern const LayerOps kLayer;

}  // namespace rapt::cuda
