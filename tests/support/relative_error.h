// The relative error of a result: norm of the difference over norm of the expected result.
#pragma once

#include <gtest/gtest.h>

#include "rapt/tensor.h"

namespace rapt::test {

// The error over the finite part of the expected result, in double. Infinite if non-finite elements differ (-inf must
// match -inf, NaN must match NaN), if an expected result of zeros is not matched exactly, or if shapes differ. Huge
// numbers (1e8 and more), such as common fill values for hidden keys, are measured separately, so that they do not
// dominate the error.
double relative_error(const ConstTensorView& result, const ConstTensorView& answer);

// Succeeds if relative_error is at most `bound`; otherwise reports the error, the bound and the worst element.
::testing::AssertionResult is_near(const ConstTensorView& result, const ConstTensorView& answer, double bound);

// The bound for a result in f32: 2e-6, or twice PyTorch's own f32 error, whichever is larger.
double f32_bound(const ConstTensorView& f32_answer, const ConstTensorView& f64_answer);

}  // namespace rapt::test
