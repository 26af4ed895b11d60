// The reference engine: the plain formula of attention, in double. It supports every option and defines its meaning;
// every other engine is tested against it. Clarity matters more than speed.
#pragma once

#include "core/engine.h"

namespace rapt {

extern const EngineRow kReferenceEngine;

}  // namespace rapt
