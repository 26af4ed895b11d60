// The table of engines, and the choice among them.
#pragma once

#include <span>

#include "core/problem.h"

namespace rapt {

// Every engine of this build, fastest first.
std::span<const EngineTable* const> engines();

// The engine that a call asks for.
const EngineTable& choose_engine(Engine wanted);

}  // namespace rapt
