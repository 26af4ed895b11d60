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

// A call's memory: the caller's workspace, or from the heap. First come the lists of the problem, then what the engine
// needs. A workspace may begin anywhere; engines get memory that begins on a boundary.
class Memory {
 public:
  Memory(const char* function, std::span<std::byte> workspace, std::size_t problem_bytes)
      : function_(function), workspace_(workspace), problem_bytes_(problem_bytes) {}

  static constexpr std::size_t kSlack = Arena::kAlignment - 1;

  // A workspace without room even for the lists is refused later, when it is known how much the call needs.
  std::span<std::byte> for_problem() {
    if (workspace_.size() >= problem_bytes_ + kSlack) return aligned(workspace_).first(problem_bytes_);
    return allocate(own_problem_, problem_bytes_);
  }
  std::span<std::byte> for_engine(std::size_t bytes) {
    if (workspace_.data() == nullptr) return allocate(own_engine_, bytes);
    const std::size_t needed = problem_bytes_ + bytes + kSlack;
    if (workspace_.size() < needed) {
      throw Error(text(function_, ": workspace has ", workspace_.size(), " bytes; this call needs ", needed));
    }
    return aligned(workspace_).subspan(problem_bytes_, bytes);
  }

 private:
  static std::span<std::byte> aligned(std::span<std::byte> memory) {
    const std::size_t past = reinterpret_cast<std::uintptr_t>(memory.data()) % Arena::kAlignment;
    return memory.subspan(past == 0 ? 0 : Arena::kAlignment - past);
  }
  static std::span<std::byte> allocate(std::unique_ptr<std::byte[]>& own, std::size_t bytes) {
    own.reset(new std::byte[bytes + kSlack]);  // not zeroed: engines write before they read
    return aligned({own.get(), bytes + kSlack}).first(bytes);
  }

  const char* function_;
  std::span<std::byte> workspace_;
  std::size_t problem_bytes_;
  std::unique_ptr<std::byte[]> own_problem_, own_engine_;
};

}  // namespace

void attention(const AttentionOutputs& outputs, const ConstTensorView& query, const ConstTensorView& key,
               const ConstTensorView& value, const AttentionOptions& options) {
  constexpr const char* kFunction = "attention";
  Memory memory(kFunction, options.workspace, problem_bytes(query, options));
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
  Memory memory(kFunction, {}, problem_bytes(query, options));
  Arena arena(memory.for_problem());
  ForwardProblem problem = resolve_forward(kFunction, outputs, query, key, value, options, arena);
  return arena.used() + choose_engine(options.engine, problem).forward_workspace(problem) + Memory::kSlack;
}

void attention_backward(const AttentionGradients& gradients, const AttentionUpstream& upstream,
                        const ConstTensorView& query, const ConstTensorView& key, const ConstTensorView& value,
                        const AttentionOptions& options) {
  constexpr const char* kFunction = "attention_backward";
  Memory memory(kFunction, options.workspace, problem_bytes(query, options));
  Arena arena(memory.for_problem());
  BackwardProblem problem = resolve_backward(kFunction, gradients, upstream, query, key, value, options, arena);
  const EngineTable& engine = choose_engine(options.engine, problem);
  engine.backward(problem, memory.for_engine(engine.backward_workspace(problem)));
}

std::size_t attention_backward_workspace_bytes(const AttentionGradients& gradients, const AttentionUpstream& upstream,
                                               const ConstTensorView& query, const ConstTensorView& key,
                                               const ConstTensorView& value, const AttentionOptions& options) {
  constexpr const char* kFunction = "attention_backward_workspace_bytes";
  Memory memory(kFunction, {}, problem_bytes(query, options));
  Arena arena(memory.for_problem());
  BackwardProblem problem = resolve_backward(kFunction, gradients, upstream, query, key, value, options, arena);
  return arena.used() + choose_engine(options.engine, problem).backward_workspace(problem) + Memory::kSlack;
}

}  // namespace rapt
