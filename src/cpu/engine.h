// The CPU engine: tiled, vectorised, threaded. Forward for f32, bf16 and f16.
#pragma once

#include "core/problem.h"
#include "core/product.h"

namespace rapt {

const EngineTable& cpu_engine();
const ProductTable& cpu_product();  // f32, bf16 and f16

}  // namespace rapt
