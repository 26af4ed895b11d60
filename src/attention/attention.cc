// The public calls: validate and resolve, choose an engine, plan, find a workspace, run.
#include "rapt/attention.h"

#include "attention/engines.h"
#include "attention/planned.h"
#include "attention/resolve.h"
#include "attention/workspace.h"
#include "core/call_counts.h"

namespace rapt {

PlannedForward plan_forward(const char* function, const AttentionOutputs& outputs, const ConstTensorView& query,
                            const ConstTensorView& key, const ConstTensorView& value, const AttentionOptions& options,
                            Arena& arena, Outputs checked) {
  ForwardProblem problem = resolve_forward(function, outputs, query, key, value, options, arena, checked);
  const EngineRow& engine = choose_engine(Checks(function, query.device()), options.engine, problem);
  core::count_call(&core::CallCounts::attention_plans);
  const Plan plan = engine.attention.plan(problem);
  return {problem, engine, plan};
}

PlannedBackward plan_backward(const char* function, const AttentionGradients& gradients,
                              const AttentionUpstream& upstream, const ConstTensorView& query,
                              const ConstTensorView& key, const ConstTensorView& value, const AttentionOptions& options,
                              Arena& arena) {
  BackwardProblem problem = resolve_backward(function, gradients, upstream, query, key, value, options, arena);
  const EngineRow& engine = choose_engine(Checks(function, query.device()), options.engine, problem);
  core::count_call(&core::CallCounts::attention_plans);
  const Plan plan = engine.attention.plan_backward(problem);
  return {problem, engine, plan};
}

void attention(const AttentionOutputs& outputs, const ConstTensorView& query, const ConstTensorView& key,
               const ConstTensorView& value, const AttentionOptions& options) {
  constexpr const char* kFunction = "attention";
  CallMemory memory(kFunction, query.device(), options.workspace, problem_bytes(query, options), options.stream);
  Arena arena(memory.for_problem());
  const PlannedForward call = plan_forward(kFunction, outputs, query, key, value, options, arena);
  call.run(memory.for_engine(call.plan.sizes));
}

Tensor attention(const ConstTensorView& query, const ConstTensorView& key, const ConstTensorView& value,
                 const AttentionOptions& options) {
  // If a rank is wrong, `out` is empty here, and the call below reports the error.
  const bool ranks = query.rank() == 4 && value.rank() == 4;
  Tensor out(ranks ? Dims{query.size(0), query.size(1), query.size(2), value.size(3)} : Dims{0}, query.dtype(),
             find_device(query.device()) != nullptr ? query.device() : Device{});
  attention({.out = out}, query, key, value, options);
  return out;
}

std::size_t attention_workspace_bytes(const AttentionOutputs& outputs, const ConstTensorView& query,
                                      const ConstTensorView& key, const ConstTensorView& value,
                                      const AttentionOptions& options) {
  constexpr const char* kFunction = "attention_workspace_bytes";
  CallMemory memory(kFunction, query.device(), options.workspace, problem_bytes(query, options), options.stream);
  Arena arena(memory.for_problem());
  const PlannedForward call = plan_forward(kFunction, outputs, query, key, value, options, arena);
  return memory.workspace_bytes(call.plan.sizes);
}

void attention_backward(const AttentionGradients& gradients, const AttentionUpstream& upstream,
                        const ConstTensorView& query, const ConstTensorView& key, const ConstTensorView& value,
                        const AttentionOptions& options) {
  constexpr const char* kFunction = "attention_backward";
  CallMemory memory(kFunction, query.device(), options.workspace, problem_bytes(query, options), options.stream);
  Arena arena(memory.for_problem());
  const PlannedBackward call = plan_backward(kFunction, gradients, upstream, query, key, value, options, arena);
  call.run(memory.for_engine(call.plan.sizes));
}

std::size_t attention_backward_workspace_bytes(const AttentionGradients& gradients, const AttentionUpstream& upstream,
                                               const ConstTensorView& query, const ConstTensorView& key,
                                               const ConstTensorView& value, const AttentionOptions& options) {
  constexpr const char* kFunction = "attention_backward_workspace_bytes";
  CallMemory memory(kFunction, query.device(), options.workspace, problem_bytes(query, options), options.stream);
  Arena arena(memory.for_problem());
  const PlannedBackward call = plan_backward(kFunction, gradients, upstream, query, key, value, options, arena);
  return memory.workspace_bytes(call.plan.sizes);
}

}  // namespace rapt
