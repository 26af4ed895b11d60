// The passes of the reference engine.
#pragma once

#include "core/problem.h"
#include "core/product.h"

namespace rapt::reference {

std::size_t forward_workspace(const ForwardProblem& problem);
void forward(const ForwardProblem& problem, std::span<std::byte> memory);

std::size_t backward_workspace(const BackwardProblem& problem);
void backward(const BackwardProblem& problem, std::span<std::byte> memory);

std::size_t packed_bytes(const PackedWeights& weights);
void pack(const ConstTensorView& from, const PackedWeights& to, const Workers& workers);
std::size_t product_workspace(const ProductProblem& problem);
void multiply(const ProductProblem& problem, std::span<std::byte> workspace);

}  // namespace rapt::reference
