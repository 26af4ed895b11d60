// The CUDA engine as a row of the table of engines (core/engine.h). In a build without it (src/cuda/absent.cc) the row
// says that the engine is absent.
#pragma once

#include "core/engine.h"

namespace rapt {

extern const EngineRow kCudaEngine;

}  // namespace rapt
