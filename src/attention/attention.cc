// The public calls: validate and resolve, choose an engine, find a workspace, run.
#include "rapt/attention.h"

#include "attention/engines.h"
#include "attention/resolve.h"
#include "attention/workspace.h"

namespace rapt {

void attention(const AttentionOutputs& outputs, const ConstTensorView& query, const ConstTensorView& key,
               const ConstTensorView& value, const AttentionOptions& options) {
  ForwardProblem problem = resolve_forward("attention", outputs, query, key, value, options);
  const EngineTable& engine = choose_engine(options.engine, problem);
  with_workspace("attention", engine.forward_workspace(problem), options.workspace,
                 [&](std::span<std::byte> workspace) { engine.forward(problem, workspace); });
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
  ForwardProblem problem = resolve_forward("attention_workspace_bytes", outputs, query, key, value, options);
  return choose_engine(options.engine, problem).forward_workspace(problem) + kWorkspaceSlack;
}

void attention_backward(const AttentionGradients& gradients, const AttentionUpstream& upstream,
                        const ConstTensorView& query, const ConstTensorView& key, const ConstTensorView& value,
                        const AttentionOptions& options) {
  BackwardProblem problem = resolve_backward("attention_backward", gradients, upstream, query, key, value, options);
  const EngineTable& engine = choose_engine(options.engine, problem);
  with_workspace("attention_backward", engine.backward_workspace(problem), options.workspace,
                 [&](std::span<std::byte> workspace) { engine.backward(problem, workspace); });
}

std::size_t attention_backward_workspace_bytes(const AttentionGradients& gradients, const AttentionUpstream& upstream,
                                               const ConstTensorView& query, const ConstTensorView& key,
                                               const ConstTensorView& value, const AttentionOptions& options) {
  BackwardProblem problem =
      resolve_backward("attention_backward_workspace_bytes", gradients, upstream, query, key, value, options);
  return choose_engine(options.engine, problem).backward_workspace(problem) + kWorkspaceSlack;
}

}  // namespace rapt
