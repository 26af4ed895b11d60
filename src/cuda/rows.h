// Forward attention on Hopper's tensor cores (sm_90a): bf16 and f16, head sizes up to 256, every option but pages and
// i8.
#pragma once

#include "cuda/launch.h"

namespace rapt::cuda {

extern const KernelSet kRowsKernels;

}  // namespace rapt::cuda
