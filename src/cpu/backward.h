// Backward of the cpu engine.
#pragma once

#include "cpu/kernel_table.h"

namespace rapt::cpu {

std::size_t backward_workspace(const BackwardProblem& problem);
void backward(const BackwardProblem& problem, std::span<std::byte> memory);

}  // namespace rapt::cpu
