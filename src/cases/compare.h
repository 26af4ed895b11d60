// The error of a result relative to the expected one.
#pragma once

#include <string>
#include <vector>

#include "cases/case.h"

namespace rapt::cases {

// Norm of the difference relative to the norm of the expected values. Where either holds a non-finite value, the other
// must hold the same one (NaN for NaN, −inf for −inf); otherwise the error is infinite. The error of equal tensors is
// 0, even if all their elements are 0.
double relative_error(const ConstTensorView& got, const ConstTensorView& wanted);

// One output of a case: its error and the limit.
struct Comparison {
  std::string output;
  double error = 0.0;
  double allowed = 0.0;
};
std::vector<Comparison> compare(const CaseSpec& spec, const Answer& got, const Answer& wanted);
// The same for gradients. If a gradient is a difference of larger terms, its error is relative to the terms' size.
std::vector<Comparison> compare(const CaseSpec& spec, const Gradients& got, const Gradients& wanted);

// Empty if the result is good; otherwise the name of each output that is off, with its error and limit.
std::string mismatch(const CaseSpec& spec, const Answer& got, const Answer& wanted);
std::string mismatch(const std::vector<Comparison>& all);

}  // namespace rapt::cases
