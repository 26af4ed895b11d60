// The reference engine: attention as the formula reads, in double. It is the definition of every option, and the oracle
// that every other engine is tested against. Plain before fast.
#pragma once

#include "core/problem.h"
#include "core/product.h"

namespace rapt {

const EngineTable& reference_engine();
const ProductTable& reference_product();

}  // namespace rapt
