// The kernels of backward, compiled once for each instruction set that this compiler can target.
// The order of the lines below matters, so no tool may sort them:
// clang-format off
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cpu/backward/backward_kernels.cc"
#include "hwy/foreach_target.h"  // includes this file again for each target
#include "hwy/highway.h"
#include "cpu/backward/backward-inl.h"
// clang-format on

HWY_BEFORE_NAMESPACE();
namespace rapt::cpu::HWY_NAMESPACE {

BackwardKernels GetBackwardKernels();
BackwardKernels GetBackwardKernels() {
  return {.scratch_bytes = GradientScratchBytes,
          .prepare = Prepare,
          .differentiate = Differentiate,
          .store_queries = StoreQueries,
          .differentiate_mask = DifferentiateMask};
}

}  // namespace rapt::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
