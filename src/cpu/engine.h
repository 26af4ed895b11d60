// The CPU engine: tiled, vectorised, threaded. Forward for f32, bf16 and f16.
#pragma once

#include "core/problem.h"

namespace rapt {

const EngineTable& cpu_engine();

}  // namespace rapt
