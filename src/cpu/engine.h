// The EngineRow of the CPU engine: tiled, vectorised, multithreaded kernels for attention, its gradients and the packed
// product. The engine computes in f32; for f64 calls the reference engine is chosen.
#pragma once

#include "core/engine.h"

namespace rapt {

extern const EngineRow kCpuEngine;

}  // namespace rapt
