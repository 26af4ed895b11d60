// In place of tensor_core_check.cu, in a build without a CUDA compiler.

#include "cuda/tensor_core_check.h"
#include "rapt/error.h"

namespace rapt::cuda {

TensorCoreReport check_tensor_core(int /*tiles*/, std::uint64_t /*seed*/) {
  throw Error("tensor-core check: this build has no cuda engine; build rapt where nvcc is, or with make CUDA=pypi");
}

}  // namespace rapt::cuda
