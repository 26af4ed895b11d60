// The reference engine: the plain formula of attention, in double. It is the definition of every option, and the oracle
// that every other engine is tested against. Plain before fast.
#pragma once

#include "core/engine.h"

namespace rapt {

extern const EngineRow kReferenceEngine;

}  // namespace rapt
