// Checks the backward pass of a benchmark case: compares some gradients with the formula in double.
#pragma once

#include "bench/harness/attention.h"
#include "bench/harness/case.h"

namespace rapt::bench {

// Compares the results of a call whose tensors are on the CPU, and whose forward and backward have run: dq of some
// queries, and dk and dv of some keys, including the first and last ones. The error is computed over all compared
// numbers of one gradient.
BenchCheck compare_backward(const BenchCase& c, const BenchCall& call);

}  // namespace rapt::bench
