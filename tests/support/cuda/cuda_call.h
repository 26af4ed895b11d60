// The arguments that CUDA kernels would receive for a test case, with pointers to host memory instead of GPU memory, so
// that a machine without a GPU can test code that uses them.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "cases/case.h"
#include "core/problem.h"
#include "cuda/arguments.h"

namespace rapt::test {

class CudaCall {
 public:
  explicit CudaCall(const cases::Case& test);
  CudaCall(const CudaCall&) = delete;
  CudaCall& operator=(const CudaCall&) = delete;

  const ForwardProblem& problem() const { return problem_; }
  const cuda::Arguments& arguments() const { return arguments_; }
  std::span<const cuda::Sequence> sequences() const;

 private:
  std::unique_ptr<std::byte[]> lists_memory_;  // of the problem
  std::vector<std::byte> block_;               // of the arguments
  cases::Buffer out_;
  ForwardProblem problem_;
  cuda::Arguments arguments_;
};

}  // namespace rapt::test
