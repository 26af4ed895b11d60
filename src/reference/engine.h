// The reference engine: the plain formula of attention, in double. It defines every option, and every other engine is
// tested against it. Clarity matters more than speed.
#pragma once

#include "core/engine.h"

namespace rapt {

extern const EngineRow kReferenceEngine;

}  // namespace rapt
