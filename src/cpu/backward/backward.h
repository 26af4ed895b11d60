// Backward of the cpu engine.
#pragma once

#include "core/engine.h"
#include "cpu/kernel_table.h"

namespace rapt::cpu {

Plan plan_backward(const BackwardProblem& problem);
void backward(const BackwardProblem& problem, const Plan& plan, const Buffers& buffers);

}  // namespace rapt::cpu
