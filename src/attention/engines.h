// The list of engines, and the choice among them.
#pragma once

#include "attention/checks.h"
#include "core/engine.h"

namespace rapt {

// All engines of this build, the fastest first.
std::span<const EngineRow* const> engines();

// The engine that a call asks for, or the fastest that can compute it, and which variant of it. Throws if the requested
// engine cannot, with the engine's reason.
const EngineRow& choose_engine(const Checks& checks, Engine wanted, AttentionProblem& problem);
// For a matrix that is stored in `dtype`.
const EngineRow& choose_engine(const Checks& checks, Engine wanted, DType dtype);

}  // namespace rapt
