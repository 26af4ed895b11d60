// The two passes of the reference engine.
#pragma once

#include "core/problem.h"

namespace rapt::reference {

std::size_t forward_workspace(const ForwardProblem& problem);
void forward(const ForwardProblem& problem, std::span<std::byte> memory);

std::size_t backward_workspace(const BackwardProblem& problem);
void backward(const BackwardProblem& problem, std::span<std::byte> memory);

}  // namespace rapt::reference
