// The softmax of a row, made from parts of its keys: maximum and sum of exponentials.
//
// A score of NaN or +inf makes the state NaN, whatever is merged with it. A part in which the row sees nothing has the
// maximum −inf and is not merged.
#pragma once

#include <cmath>

#include "cuda/arguments.h"
#include "cuda/terms.cuh"

namespace rapt::cuda {

// The larger of the two, or NaN if either is NaN; fmaxf would return the other.
RAPT_HOST_DEVICE float maximum_of(float a, float b) { return a > b || a != a ? a : b; }

// The factors by which two parts are multiplied as they are merged.
struct MergeFactors {
  float a, b;
};

struct RowState {
  float maximum = kHidden;
  float sum = 0.0F;  // Σ exp(s − maximum)

  RAPT_HOST_DEVICE bool sees_none() const { return maximum == kHidden; }

  // Merges a part that sees something; what was summed with the weights of either part has to be multiplied by the
  // factor of that part.
  RAPT_HOST_DEVICE MergeFactors merge(const RowState& part) {
    const float m = maximum_of(maximum, part.maximum);
    const MergeFactors factors = {expf(maximum - m), expf(part.maximum - m)};
    sum = fmaf(sum, factors.a, part.sum * factors.b);
    maximum = m;
    return factors;
  }

  // log Σ exp(s)
  RAPT_HOST_DEVICE float lse() const { return sees_none() ? kHidden : maximum + logf(sum); }

  // The weight of a score: 0 for each in a row that sees nothing, NaN for each in a row that has a NaN or +inf.
  RAPT_HOST_DEVICE float weight(float s) const { return sees_none() ? 0.0F : expf(s - maximum) / sum; }
};

}  // namespace rapt::cuda
