// The CPU engine: tiled, vectorised, threaded. Attention, its gradients and the packed product in f32, bf16 and f16.
#pragma once

#include "core/engine.h"

namespace rapt {

extern const EngineRow kCpuEngine;

}  // namespace rapt
