#include "emulated/rows_engine.h"

#include <cstddef>
#include <cstdlib>
#include <memory>
#include <span>
#include <vector>

#include "core/engine.h"
#include "cuda/build_arguments.h"
#include "cuda/rows.h"
#include "emulated/block.h"
#include "reference/engine.h"

namespace rapt::test {

namespace {

// Memory of the exact size, so that a sanitizer detects accesses past it, filled with NaN in every float type.
class Memory {
 public:
  explicit Memory(std::size_t bytes) : size_(bytes), bytes_(bytes + kAlignment, std::byte{0xFF}) {}
  std::span<std::byte> span() {
    void* begin = bytes_.data();
    std::size_t space = bytes_.size();
    return {static_cast<std::byte*>(std::align(kAlignment, size_, begin, space)), size_};
  }

 private:
  static constexpr std::size_t kAlignment = 64;
  std::size_t size_;
  std::vector<std::byte> bytes_;
};

// Calls run(arguments, launch) without a workspace.
template <class Run>
auto with_call(const ForwardProblem& problem, const Run& run) {
  Memory lists(cuda::list_bytes(problem));
  const cuda::ListBlock block{lists.span(), lists.span().data()};
  const cuda::Arguments arguments = cuda::call_of(problem, block).arguments;
  return run(arguments, cuda::Launch{.capability = 90,
                                     .multiprocessors = emulated_multiprocessors,
                                     .shared_bytes = static_cast<int>(kSharedBytes),
                                     .host_lists = cuda::host_lists(arguments, block)});
}

Plan plan(const ForwardProblem& problem) {
  if (!problem.outputs.captures.empty()) throw Error("the rows kernel writes no captures");
  return with_call(problem, [](const cuda::Arguments& call, const cuda::Launch& launch) {
    if (!cuda::kRowsKernels.can(call, launch)) throw Error("the rows kernel does not take this call");
    return Plan();
  });
}

void forward(const ForwardProblem& problem, const Plan& /*plan*/, const Buffers& /*buffers*/) {
  if (problem.outputs.out.count() == 0) return;  // as the engine does
  with_call(problem, [](const cuda::Arguments& call, cuda::Launch launch) {
    Memory workspace(cuda::kRowsKernels.workspace_bytes(call, launch));
    launch.workspace = workspace.span();
    cuda::kRowsKernels.forward(call, launch);
  });
}

constexpr auto kEmulatedRows = static_cast<Engine>(101);

const EngineRow& row() {
  static const EngineRow the_row = [] {
    EngineRow made = kReferenceEngine;  // products and backward, which are not emulated
    made.engine = kEmulatedRows;
    made.name = "emulated rows";
    made.attention.cannot = cuda::cannot;
    made.attention.plan = plan;
    made.attention.run = forward;
    return made;
  }();
  return the_row;
}

}  // namespace

Engine emulated_rows() {
  static const Engine registered = [] {
    register_engine(row());
    return kEmulatedRows;
  }();
  return registered;
}

}  // namespace rapt::test
