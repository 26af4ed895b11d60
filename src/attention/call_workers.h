// A call's threads, and the function that runs them: the caller's, or ours.
#pragma once

#include <algorithm>
#include <cstdint>

#include "attention/checks.h"
#include "core/product.h"
#include "core/thread_pool.h"

namespace rapt {

class CallWorkers {
 public:
  // `given` must outlive this.
  CallWorkers(const Checks& checks, int threads, const ParallelFor& given)
      : threads_(std::min(threads > 0 ? threads : thread_count(), core::kMaxThreads)), given_(given) {
    checks.require(threads >= 0, "threads is ", threads, "; it must be positive, or 0 for all");
  }
  Workers get() const { return {threads_, given_ ? &given_ : &own_}; }

 private:
  int threads_;
  const ParallelFor& given_;
  ParallelFor own_ = [threads = threads_](std::int64_t count, const Task& task) {
    core::parallel_for(count, task, threads);
  };
};

}  // namespace rapt
