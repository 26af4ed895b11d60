// The choice among the engines.
#pragma once

#include "attention/checks.h"
#include "core/engine.h"

namespace rapt {

// The engine that a call asks for, or the fastest of its device that can compute it, and which variant of it. Throws
// where the one asked for cannot, with the engine's reason.
const EngineRow& choose_engine(const Checks& checks, Engine wanted, AttentionProblem& problem);
// For a matrix that is stored in `dtype`, in memory of `device`.
const EngineRow& choose_engine(const Checks& checks, Engine wanted, DType dtype, Device device);

}  // namespace rapt
