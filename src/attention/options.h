// Resolves the inputs and options of a call.
#pragma once

#include "attention/checks.h"
#include "core/arena.h"
#include "core/problem.h"

namespace rapt {

// Storage for a problem's lists.
struct ProblemLists {
  ProblemLists(Arena& arena, const ConstTensorView& query, const AttentionOptions& options);

  std::span<SequenceSpan> sequences;
  std::span<Mask> masks;
};

void resolve_options(const Checks& checks, const ConstTensorView& query, const ConstTensorView& key,
                     const ConstTensorView& value, const AttentionOptions& options, const ProblemLists& lists,
                     AttentionProblem& problem);

}  // namespace rapt
