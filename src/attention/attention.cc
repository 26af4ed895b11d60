// The public calls: validate and resolve, choose an engine, find a workspace, run.
#include "rapt/attention.h"

#include <cstdint>
#include <memory>

#include "attention/engines.h"
#include "attention/resolve.h"
#include "core/arena.h"
#include "core/text.h"

namespace rapt {

namespace {

// A caller's workspace may begin anywhere; engines get one that begins on a boundary.
constexpr std::size_t kSlack = Arena::kAlignment - 1;

template <class Run>
void with_workspace(const char* function, std::size_t bytes, std::span<std::byte> given, const Run& run) {
  std::unique_ptr<std::byte[]> own;
  if (given.data() == nullptr) {
    own.reset(new std::byte[bytes + kSlack]);  // not zeroed: engines write before they read
    given = {own.get(), bytes + kSlack};
  } else if (given.size() < bytes + kSlack) {
    throw Error(text(function, ": workspace has ", given.size(), " bytes; this call needs ", bytes + kSlack));
  }
  const std::size_t past = reinterpret_cast<std::uintptr_t>(given.data()) % Arena::kAlignment;
  run(given.subspan(past == 0 ? 0 : Arena::kAlignment - past, bytes));
}

}  // namespace

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
  return choose_engine(options.engine, problem).forward_workspace(problem) + kSlack;
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
  return choose_engine(options.engine, problem).backward_workspace(problem) + kSlack;
}

}  // namespace rapt
