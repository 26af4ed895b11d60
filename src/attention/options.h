// What the inputs and the options of a call mean.
#pragma once

#include "attention/checks.h"
#include "core/problem.h"

namespace rapt {

void resolve_options(const Checks& checks, const ConstTensorView& query, const ConstTensorView& key,
                     const ConstTensorView& value, const AttentionOptions& options, AttentionProblem& problem);

}  // namespace rapt
