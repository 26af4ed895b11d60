// The table of engines, and the choice among them.
#pragma once

#include "core/problem.h"

namespace rapt {

// The engine that a call asks for, or the fastest that can do it. Throws where the one asked for cannot.
const EngineTable& choose_engine(Engine wanted, const ForwardProblem& problem);
const EngineTable& choose_engine(Engine wanted, const BackwardProblem& problem);

}  // namespace rapt
