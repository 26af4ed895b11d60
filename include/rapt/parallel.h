// Threads: the library's small thread pool, and the interface for using another one.
#pragma once

#include <cstdint>
#include <functional>

#pragma GCC visibility push(default)
namespace rapt {

// A caller's thread pool. It must call task(0) … task(count - 1), each exactly once, in any order and on any threads,
// and return when all are done. Results do not depend on the schedule. An exception from a task must reach the caller
// of the pool. A call submits at most `threads` tasks at once. Threads should run in the caller's floating-point mode,
// as those of the library's pool do, because bits depend on it.
using Task = std::function<void(std::int64_t index)>;
using ParallelFor = std::function<void(std::int64_t count, const Task& task)>;

// The library's thread pool. Its worker threads start on first use and sleep when idle. A call runs serially if it is
// nested in another parallel_for, if count or thread_count() is 1, or while another thread uses the pool. Safe to use
// after fork(): the child starts its own pool. If tasks throw, parallel_for rethrows the exception of the lowest index,
// after all tasks have ended.
void parallel_for(std::int64_t count, const Task& task);

// The number of threads that parallel_for uses at most, including the calling one: the cores this process may run on
// under CPU affinity and the container's CPU quota, or RAPT_NUM_THREADS if set.
int thread_count();

// Overrides thread_count() for this process. 0 restores the default.
void set_thread_count(int threads);

}  // namespace rapt
#pragma GCC visibility pop
