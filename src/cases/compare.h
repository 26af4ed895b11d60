// How far an answer is from the truth.
#pragma once

#include <string>

#include "cases/case.h"

namespace rapt::cases {

// Norm of the difference over norm of the answer. Where either holds something that is not finite, the other must hold
// the very same there (NaN for NaN, −inf for −inf): if not, the error is infinite. Of two zeros it is 0.
double relative_error(const ConstTensorView& got, const ConstTensorView& wanted);

// What an engine that works in f32 may differ by, for an output of this type: one rounding at the end, and the sums.
double tolerance(const CaseSpec& spec, DType output);

// Empty when the answer is good; otherwise says which output is off, and by how much.
std::string mismatch(const CaseSpec& spec, const Answer& got, const Answer& wanted);

}  // namespace rapt::cases
