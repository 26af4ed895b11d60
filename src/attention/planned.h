// A call of attention that is ready to run: it is validated, and the chosen engine has planned it.
#pragma once

#include "core/arena.h"
#include "core/engine.h"

namespace rapt {

// Whether a layer has already checked the shapes, types and overlap of a call's outputs.
enum class Outputs : std::uint8_t { unchecked, checked };

struct PlannedForward {
  ForwardProblem problem;
  const EngineRow& engine;
  Plan plan;

  void run(const Buffers& buffers) const { engine.attention.run(problem, plan, buffers); }
};

struct PlannedBackward {
  BackwardProblem problem;
  const EngineRow& engine;
  Plan plan;

  void run(const Buffers& buffers) const { engine.attention.run_backward(problem, plan, buffers); }
};

// Each throws rapt::Error on the first invalid argument, with `function` as the name of the call, before anything is
// written. The problem's lists come from the arena, which must have problem_bytes (attention/resolve.h) of memory; the
// problem refers to the options and outputs.
PlannedForward plan_forward(const char* function, const AttentionOutputs& outputs, const ConstTensorView& query,
                            const ConstTensorView& key, const ConstTensorView& value, const AttentionOptions& options,
                            Arena& arena, Outputs checked = Outputs::unchecked);
PlannedBackward plan_backward(const char* function, const AttentionGradients& gradients,
                              const AttentionUpstream& upstream, const ConstTensorView& query,
                              const ConstTensorView& key, const ConstTensorView& value, const AttentionOptions& options,
                              Arena& arena);

}  // namespace rapt
