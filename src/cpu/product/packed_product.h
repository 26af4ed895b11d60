// The packed matrix product of the CPU engine.
#pragma once

#include "core/engine.h"

namespace rapt::cpu {

std::size_t packed_bytes(const PackedWeights& weights);
void pack(const ConstTensorView& from, const PackedWeights& to, const Workers& workers);
Plan plan_product(const ProductProblem& problem);
void multiply(const ProductProblem& problem, const Plan& plan, const Buffers& buffers);

}  // namespace rapt::cpu
