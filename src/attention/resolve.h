// Validation, once and at the edge: from what a caller asked to a problem that an engine may trust.
#pragma once

#include <string_view>

#include "core/problem.h"

namespace rapt {

// Each throws rapt::Error on the first thing that is wrong, before anything is written.
ForwardProblem resolve_forward(std::string_view function, const AttentionOutputs& outputs, const ConstTensorView& query,
                               const ConstTensorView& key, const ConstTensorView& value,
                               const AttentionOptions& options);
BackwardProblem resolve_backward(std::string_view function, const AttentionGradients& gradients,
                                 const AttentionUpstream& upstream, const ConstTensorView& query,
                                 const ConstTensorView& key, const ConstTensorView& value,
                                 const AttentionOptions& options);

}  // namespace rapt
