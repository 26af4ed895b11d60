// The passes of the reference engine.
#pragma once

#include "core/engine.h"

namespace rapt::reference {

Plan plan_forward(const ForwardProblem& problem);
void forward(const ForwardProblem& problem, const Plan& plan, const Buffers& buffers);

Plan plan_backward(const BackwardProblem& problem);
void backward(const BackwardProblem& problem, const Plan& plan, const Buffers& buffers);

std::size_t packed_bytes(const PackedWeights& weights);
void pack(const ConstTensorView& from, const PackedWeights& to, const Workers& workers);
Plan plan_product(const ProductProblem& problem);
void multiply(const ProductProblem& problem, const Plan& plan, const Buffers& buffers);

}  // namespace rapt::reference
