// The relative error of a result: norm of the difference over norm of the expected result.
#pragma once

#include <gtest/gtest.h>

#include "rapt/tensor.h"

namespace rapt::test {

// The error over the finite part of the answer, in double; infinite where what is not finite differs (-inf must meet
// -inf, NaN must meet NaN), where an answer of nothing but zeros is not met exactly, or where shapes differ. Numbers as
// large as the fills people use for "hidden" (1e8 and more) are measured apart, so that one of them does not drown the
// rest.
double relative_error(const ConstTensorView& result, const ConstTensorView& answer);

// Passes where relative_error is at most `bound`; says the error, the bound and the worst element where it is not.
::testing::AssertionResult is_near(const ConstTensorView& result, const ConstTensorView& answer, double bound);

// The bound for a result in f32: 2e-6, or twice PyTorch's own f32 error, whichever is larger.
double f32_bound(const ConstTensorView& f32_answer, const ConstTensorView& f64_answer);

}  // namespace rapt::test
