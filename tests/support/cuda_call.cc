#include "support/cuda_call.h"

#include <limits>

#include "attention/resolve.h"
#include "core/arena.h"
#include "cuda/build_arguments.h"

namespace rapt::test {

CudaCall::CudaCall(const cases::Case& test) {
  const Dims& q = test.query.shape();
  out_ = cases::make_buffer(test.spec.layout, {q[0], q[1], q[2], test.spec.value_size}, test.query.dtype());
  AttentionOutputs outputs{.out = out_.view};
  if (test.spec.lse) {
    lse_ = Tensor({q[0], q[1], q[2]}, DType::f32);
    for (float& value : lse_.values<float>()) value = std::numeric_limits<float>::quiet_NaN();
    outputs.lse = lse_.view();
  }
  const std::size_t bytes = problem_bytes(test.query, test.options);
  std::size_t space = bytes + Arena::kAlignment;
  lists_memory_ = std::make_unique<std::byte[]>(space);
  void* aligned = lists_memory_.get();
  std::align(Arena::kAlignment, bytes, aligned, space);
  Arena arena({static_cast<std::byte*>(aligned), bytes});
  problem_ = resolve_forward("cuda call", outputs, test.query, test.key, test.value, test.options, arena,
                             Outputs::unchecked);
  block_.resize(cuda::list_bytes(problem_));
  arguments_ = cuda::call_of(problem_, {.host = block_, .device = block_.data()}).arguments;
}

cases::Answer CudaCall::answer() const {
  cases::Answer answer;
  answer.out = Tensor::copy_of(out_.view, DType::f64);
  if (problem_.outputs.lse.defined()) answer.lse = lse_.to(DType::f64);
  return answer;
}

}  // namespace rapt::test
