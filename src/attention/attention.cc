// The public calls: validate and resolve, choose an engine, find a workspace, run.
#include "rapt/attention.h"

#include "attention/engines.h"
#include "attention/resolve.h"
#include "attention/workspace.h"

namespace rapt {

void attention(const AttentionOutputs& outputs, const ConstTensorView& query, const ConstTensorView& key,
               const ConstTensorView& value, const AttentionOptions& options) {
  constexpr const char* kFunction = "attention";
  CallMemory memory(kFunction, options.workspace, problem_bytes(query, options));
  Arena arena(memory.for_problem());
  ForwardProblem problem = resolve_forward(kFunction, outputs, query, key, value, options, arena);
  const EngineTable& engine = choose_engine(options.engine, problem);
  engine.forward(problem, memory.for_engine(engine.forward_workspace(problem)));
}

Tensor attention(const ConstTensorView& query, const ConstTensorView& key, const ConstTensorView& value,
                 const AttentionOptions& options) {
  // Tensors of a wrong rank get an empty `out` here and their error from the call below.
  const bool ranks = query.rank() == 4 && value.rank() == 4;
  Tensor out(ranks ? Dims{query.size(0), query.size(1), query.size(2), value.size(3)} : Dims{0}, query.dtype());
  attention({.out = out}, query, key, value, options);
  return out;
}

std::size_t attention_workspace_bytes(const AttentionOutputs& outputs, const ConstTensorView& query,
                                      const ConstTensorView& key, const ConstTensorView& value,
                                      const AttentionOptions& options) {
  constexpr const char* kFunction = "attention_workspace_bytes";
  CallMemory memory(kFunction, options.workspace, problem_bytes(query, options));
  Arena arena(memory.for_problem());
  ForwardProblem problem = resolve_forward(kFunction, outputs, query, key, value, options, arena);
  return arena.used() + choose_engine(options.engine, problem).forward_workspace(problem) + CallMemory::kSlack;
}

void attention_backward(const AttentionGradients& gradients, const AttentionUpstream& upstream,
                        const ConstTensorView& query, const ConstTensorView& key, const ConstTensorView& value,
                        const AttentionOptions& options) {
  constexpr const char* kFunction = "attention_backward";
  CallMemory memory(kFunction, options.workspace, problem_bytes(query, options));
  Arena arena(memory.for_problem());
  BackwardProblem problem = resolve_backward(kFunction, gradients, upstream, query, key, value, options, arena);
  const EngineTable& engine = choose_engine(options.engine, problem);
  engine.backward(problem, memory.for_engine(engine.backward_workspace(problem)));
}

std::size_t attention_backward_workspace_bytes(const AttentionGradients& gradients, const AttentionUpstream& upstream,
                                               const ConstTensorView& query, const ConstTensorView& key,
                                               const ConstTensorView& value, const AttentionOptions& options) {
  constexpr const char* kFunction = "attention_backward_workspace_bytes";
  CallMemory memory(kFunction, options.workspace, problem_bytes(query, options));
  Arena arena(memory.for_problem());
  BackwardProblem problem = resolve_backward(kFunction, gradients, upstream, query, key, value, options, arena);
  return arena.used() + choose_engine(options.engine, problem).backward_workspace(problem) + CallMemory::kSlack;
}

}  // namespace rapt
