// The table of engines, and the choice among them.
#pragma once

#include "attention/checks.h"
#include "core/problem.h"
#include "core/product.h"

namespace rapt {

// The engine that a call asks for, or the fastest that can do it, and which variant of it. Throws where the one asked
// for cannot.
const EngineTable& choose_engine(Engine wanted, ForwardProblem& problem);
const EngineTable& choose_engine(Engine wanted, BackwardProblem& problem);
// For a matrix that is stored in `dtype`.
const ProductTable& choose_product(const Checks& checks, Engine wanted, DType dtype);

}  // namespace rapt
