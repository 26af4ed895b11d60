// The row of the CUDA engine, and its table of kernel sets. In a build without nvcc (src/cuda/absent.cc) the row says
// so.
#pragma once

#include "core/engine.h"

namespace rapt {

extern const EngineRow kCudaEngine;

}  // namespace rapt
