// The softmax of a row, merged from parts of its keys: maximum and sum of exponentials.
//
// A score of NaN or +inf makes the state NaN, whatever is merged with it. A part in which the row sees nothing has the
// maximum −inf and is not merged.
#pragma once

#include <cmath>

#include "cuda/arguments.h"
#include "cuda/terms.cuh"

namespace rapt::cuda {

// The larger of the two, or NaN if either is NaN; fmaxf would return the one that is not NaN.
RAPT_HOST_DEVICE float maximum_of(float a, float b) { return a > b || a != a ? a : b; }

// The factors of two parts that are merged.
struct MergeFactors {
  float a, b;
};

struct RowState {
  float maximum = kHidden;
  float sum = 0.0F;  // Σ exp(s − maximum)

  RAPT_HOST_DEVICE bool sees_none() const { return maximum == kHidden; }

  // Merges a part in which the row sees a key. Returns the factors by which the weighted sums of values must be
  // multiplied: `a` for the earlier parts, `b` for the new one.
  RAPT_HOST_DEVICE MergeFactors merge(const RowState& part) {
    const float m = maximum_of(maximum, part.maximum);
    const MergeFactors factors = {expf(maximum - m), expf(part.maximum - m)};
    sum = fmaf(sum, factors.a, part.sum * factors.b);
    maximum = m;
    return factors;
  }

  // log Σ exp(s)
  RAPT_HOST_DEVICE float lse() const { return sees_none() ? kHidden : maximum + logf(sum); }

  // The weight of a score. In a row that sees no key every weight is 0; in a row with a score of NaN or +inf every
  // weight is NaN.
  RAPT_HOST_DEVICE float weight(float s) const { return sees_none() ? 0.0F : expf(s - maximum) / sum; }
};

}  // namespace rapt::cuda
