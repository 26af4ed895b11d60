// The number of a call's threads, and the function that runs its tasks: the caller's or the library's.
#pragma once

#include <algorithm>

#include "attention/checks.h"
#include "core/cpu_limits.h"
#include "core/product.h"

namespace rapt {

// `given` must outlive the result.
inline Workers call_workers(const Checks& checks, int threads, const ParallelFor& given) {
  checks.require(threads >= 0, "threads is ", threads, "; it must be positive, or 0 for all");
  Workers workers = core::pool_workers(threads);
  if (given) workers.parallel_for = &given;
  return workers;
}

}  // namespace rapt
