// Builds the arguments of kernels from an attention problem. It is plain C++ without CUDA, so that tests run it for
// every case without a GPU.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "core/problem.h"
#include "cuda/arguments.h"
#include "cuda/plain.h"

namespace rapt::cuda {

// Why the engine cannot compute a problem, as text; empty if it can.
std::string cannot(const AttentionProblem& problem);

struct ForwardCall {
  Arguments arguments;
  std::vector<Selected> captures;
};
struct BackwardCall {
  Arguments arguments;  // without out and lse
  Gradients gradients;
  std::vector<MaskGradientTerm> masks;
};

// Memory for the lists of a call. They are stored inside the arguments if they fit (Lists::kInline). Otherwise call_of
// writes them to `host`, which has list_bytes() bytes, and the engine copies them to the workspace, at `device`.
struct ListBlock {
  std::span<std::byte> host{};
  const std::byte* device = nullptr;
};

// The size of the block of lists; 0 if they are stored inside the arguments.
std::size_t list_bytes(const ForwardProblem& problem);
std::size_t list_bytes(const BackwardProblem& problem);

ForwardCall call_of(const ForwardProblem& problem, const ListBlock& block = {});
BackwardCall call_of(const BackwardProblem& problem, const ListBlock& block = {});

// The lists of a call in host memory.
inline const std::byte* host_lists(const Arguments& arguments, const ListBlock& block) {
  return arguments.lists.in_workspace != nullptr ? block.host.data() : arguments.lists.bytes;
}

}  // namespace rapt::cuda
