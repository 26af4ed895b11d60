// The passes of the cpu engine.
#pragma once

#include "cpu/kernel_table.h"

namespace rapt::cpu {

std::size_t forward_workspace(const ForwardProblem& problem);
// `keep`, if wanted, gets each row's maximum and sum. Only for a call without captures.
void forward(const ForwardProblem& problem, std::span<std::byte> memory, const RowSums& keep);

std::size_t backward_workspace(const BackwardProblem& problem);
void backward(const BackwardProblem& problem, std::span<std::byte> memory);

}  // namespace rapt::cpu
