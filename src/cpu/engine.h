// The row of the CPU engine: tiled, vectorised, multithreaded kernels for attention, its gradients and the packed
// product. The engine computes in f32; f64 goes to the reference engine.
#pragma once

#include "core/engine.h"

namespace rapt {

extern const EngineRow kCpuEngine;

}  // namespace rapt
