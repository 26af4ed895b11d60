// The choice among the engines.
#pragma once

#include "attention/checks.h"
#include "core/engine.h"

namespace rapt {

// The engine that a call requests, or the fastest on its device that supports the call. Sets problem.variant. Throws
// with the engine's reason if the requested engine does not support the call.
const EngineRow& choose_engine(const Checks& checks, Engine wanted, AttentionProblem& problem);
// The same for a matrix that is stored as `dtype` in memory of `device`.
const EngineRow& choose_engine(const Checks& checks, Engine wanted, DType dtype, Device device);

}  // namespace rapt
