// The table of engines, and the choice among them.
#pragma once

#include "core/problem.h"

namespace rapt {

// The engine that a call asks for, or the fastest that can do it, and which variant of it. Throws where the one asked
// for cannot.
const EngineTable& choose_engine(Engine wanted, ForwardProblem& problem);
const EngineTable& choose_engine(Engine wanted, BackwardProblem& problem);

}  // namespace rapt
