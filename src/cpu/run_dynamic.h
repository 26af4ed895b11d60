// Dynamic scheduling of work items. The result must not depend on which worker takes which item.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <functional>

#include "core/product.h"
#include "rapt/parallel.h"

namespace rapt::cpu {

// Calls work(n, worker) for n = 0 … count − 1, started in ascending order, on at most `workers` workers, and
// done(worker) when a worker has nothing left to do.
template <class Work, class Done>
void run_dynamic(const ParallelFor& parallel_for, std::int64_t workers, std::int64_t count, const Work& work,
                 const Done& done) {
  // One task is enough, so the library's pool is not needed. A caller's own parallel_for gets the task even then,
  // because it may choose the thread that runs it.
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
  parallel_for(std::min(workers, count), std::ref(task));  // a copy of the task would allocate memory
}

template <class Work>
void run_dynamic(const ParallelFor& parallel_for, std::int64_t workers, std::int64_t count, const Work& work) {
  run_dynamic(parallel_for, workers, count, work, [](std::int64_t) {});
}

}  // namespace rapt::cpu
