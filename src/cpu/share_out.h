// Work items handed out to workers, first come first served. Which worker takes which must not matter to the result.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <functional>

#include "core/product.h"
#include "rapt/parallel.h"

namespace rapt::cpu {

// Calls work(n, worker) for n = 0 … count − 1, in ascending order of their beginning, on at most so many workers, and
// done(worker) when a worker finds nothing left.
template <class Work, class Done>
void share_out(const ParallelFor& parallel_for, std::int64_t workers, std::int64_t count, const Work& work,
               const Done& done) {
  // Nobody to wake. A caller's function gets its one task all the same: it may have to run on a thread of the caller's.
  if ((workers <= 1 || count <= 1) && &parallel_for == &core::pool_function()) {
    for (std::int64_t n = 0; n < count; ++n) work(n, std::int64_t{0});
    if (count > 0) done(std::int64_t{0});
    return;
  }
  std::atomic<std::int64_t> next{0};
  const auto task = [&](std::int64_t worker) {
    for (std::int64_t n = next++; n < count; n = next++) work(n, worker);
    done(worker);
  };
  parallel_for(std::min(workers, count), std::ref(task));  // a copy would need memory
}

template <class Work>
void share_out(const ParallelFor& parallel_for, std::int64_t workers, std::int64_t count, const Work& work) {
  share_out(parallel_for, workers, count, work, [](std::int64_t) {});
}

}  // namespace rapt::cpu
