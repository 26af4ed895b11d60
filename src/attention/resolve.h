// Validation, once, at the API boundary: turns the arguments of a call into a problem that engines can trust.
#pragma once

#include <string_view>

#include "attention/planned.h"
#include "core/arena.h"
#include "core/problem.h"

namespace rapt {

// The number of bytes that a problem's lists need.
std::size_t problem_bytes(const ConstTensorView& query, const AttentionOptions& options);

// Each throws rapt::Error on the first invalid argument, before anything is written. The problem's lists come from the
// arena, which must have problem_bytes of memory.
ForwardProblem resolve_forward(std::string_view function, const AttentionOutputs& outputs, const ConstTensorView& query,
                               const ConstTensorView& key, const ConstTensorView& value,
                               const AttentionOptions& options, Arena& arena, Outputs checked);
BackwardProblem resolve_backward(std::string_view function, const AttentionGradients& gradients,
                                 const AttentionUpstream& upstream, const ConstTensorView& query,
                                 const ConstTensorView& key, const ConstTensorView& value,
                                 const AttentionOptions& options, Arena& arena);

}  // namespace rapt
