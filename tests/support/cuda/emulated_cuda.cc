#include "support/cuda/emulated_cuda.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <span>
#include <stdexcept>
#include <vector>

#include "core/engine.h"
#include "cuda/build_arguments.h"
#include "cuda/plain_backward.cu"
#include "cuda/plain_capture.cu"
#include "cuda/plain_forward.cu"
#include "cuda/plain_mask_gradient.cu"
#include "reference/engine.h"

namespace rapt::test {

namespace {

namespace emulated = cuda::emulated;

// Memory of the exact size, so that a sanitizer detects accesses past it, filled with NaN in every float type.
class Memory {
 public:
  explicit Memory(std::size_t bytes) : bytes_(bytes, std::byte{0xFF}) {}
  std::span<std::byte> span() { return bytes_; }

 private:
  std::vector<std::byte> bytes_;
};

// Calls run(launch) with a workspace of `bytes`.
template <class Run>
void with_workspace(std::size_t bytes, const std::byte* host_lists, const Run& run) {
  Memory workspace(bytes);
  run(cuda::Launch{.workspace = workspace.span(), .host_lists = host_lists});
}

template <class Problem, class Run>
void with_call(const Problem& problem, const Run& run) {
  Memory lists(cuda::list_bytes(problem));
  const cuda::ListBlock block{lists.span(), lists.span().data()};
  const auto call = cuda::call_of(problem, block);
  run(call, cuda::host_lists(call.arguments, block));
}

void forward(const ForwardProblem& problem, const Plan& /*plan*/, const Buffers& /*buffers*/) {
  with_call(problem, [](const cuda::ForwardCall& call, const std::byte* lists) {
    const std::size_t forward_bytes = emulated::kPlainKernels.workspace_bytes(call.arguments, {.host_lists = lists});
    with_workspace(forward_bytes, lists,
                   [&](const cuda::Launch& launch) { emulated::kPlainKernels.forward(call.arguments, launch); });
    with_workspace(
        emulated::plain_captures_bytes(call.arguments, call.captures), lists,
        [&](const cuda::Launch& launch) { emulated::plain_captures(call.arguments, call.captures, launch); });
  });
}

void backward(const BackwardProblem& problem, const Plan& /*plan*/, const Buffers& /*buffers*/) {
  with_call(problem, [](const cuda::BackwardCall& call, const std::byte* lists) {
    with_workspace(emulated::plain_backward_bytes(call.arguments, call.masks), lists, [&](const cuda::Launch& launch) {
      emulated::plain_backward(call.arguments, call.gradients, call.masks, launch);
    });
  });
}

constexpr auto kEmulated = static_cast<Engine>(100);

const EngineRow& row() {
  static const EngineRow the_row = [] {
    EngineRow made = kReferenceEngine;  // products, which are not emulated
    made.engine = kEmulated;
    made.name = "emulated cuda";
    made.attention = {.cannot = cuda::cannot,
                      .plan = [](const ForwardProblem& /*problem*/) { return Plan(); },
                      .run = forward,
                      .plan_backward = [](const BackwardProblem& /*problem*/) { return Plan(); },
                      .run_backward = backward};
    return made;
  }();
  return the_row;
}

}  // namespace

Engine emulated_cuda() {
  static const Engine registered = [] {
    register_engine(row());
    return kEmulated;
  }();
  return registered;
}

}  // namespace rapt::test
