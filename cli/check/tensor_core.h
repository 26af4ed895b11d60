// `rapt check --tensor-core`: whether the arithmetic of this GPU's tensor cores is what kernels and tests assume.
#pragma once

#include "cli/exit_code.h"

namespace rapt::cli {

ExitCode run_tensor_core_check(bool json);

}  // namespace rapt::cli
