#include "support/cuda/cuda_call.h"

#include "attention/resolve.h"
#include "core/arena.h"
#include "cuda/build_arguments.h"

namespace rapt::test {

CudaCall::CudaCall(const cases::Case& test) {
  const Dims& q = test.query.shape();
  out_ = cases::make_buffer(cases::MemoryLayout::bhld, {q[0], q[1], q[2], test.spec.value_size}, test.query.dtype());
  const std::size_t bytes = problem_bytes(test.query, test.options);
  std::size_t space = bytes + Arena::kAlignment;
  lists_memory_ = std::make_unique<std::byte[]>(space);
  void* aligned = lists_memory_.get();
  std::align(Arena::kAlignment, bytes, aligned, space);
  Arena arena({static_cast<std::byte*>(aligned), bytes});
  problem_ = resolve_forward("cuda call", {.out = out_.view}, test.query, test.key, test.value, test.options, arena,
                             Outputs::unchecked);
  block_.resize(cuda::list_bytes(problem_));
  arguments_ = cuda::call_of(problem_, {.host = block_, .device = block_.data()}).arguments;
}

std::span<const cuda::Sequence> CudaCall::sequences() const {
  return {reinterpret_cast<const cuda::Sequence*>(arguments_.lists.block() + arguments_.lists.sequences),
          static_cast<std::size_t>(arguments_.sequence_count)};
}

}  // namespace rapt::test
