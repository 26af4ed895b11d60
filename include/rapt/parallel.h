// Threads: the library's own small pool, and the type by which a caller brings another one.
#pragma once

#include <cstdint>
#include <functional>

#pragma GCC visibility push(default)
namespace rapt {

// A caller's thread pool. It must call task(0) … task(count - 1), each exactly once, in any order and on any threads,
// and return when all are done. Results do not depend on how it does so. An exception from a task must reach the caller
// of the pool. At most as many tasks come at once as the call's `threads`. Threads should run in the caller's
// floating-point mode, as ours do: bits depend on it.
using Task = std::function<void(std::int64_t index)>;
using ParallelFor = std::function<void(std::int64_t count, const Task& task)>;

// The library's pool. Its threads start on first use and sleep when idle. Runs serially when called from inside another
// parallel_for, when count is 1, or in a process limited to one core. Safe to use after fork(): the child starts a pool
// of its own. Where tasks throw, the exception of the lowest
// index is rethrown here, after all of them have ended.
void parallel_for(std::int64_t count, const Task& task);

// How many threads parallel_for uses, the calling one included: the cores this process may run on, as affinity and the
// container's CPU quota allow, or RAPT_NUM_THREADS where that is set.
int thread_count();

// Overrides thread_count() for this process. 0 returns to the default.
void set_thread_count(int threads);

}  // namespace rapt
#pragma GCC visibility pop
