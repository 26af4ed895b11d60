// The thread pool of the process: when it starts, how many threads it may use, and how it handles fork and exit.
#include "rapt/parallel.h"

#include <algorithm>
#include <cstddef>
#include <exception>
#include <new>
#include <string>

#include "core/cpu_limits.h"
#include "core/product.h"
#include "core/thread_pool.h"
#include "rapt/error.h"

#if !defined(RAPT_SINGLE_THREAD)
#include <atomic>
#include <cstdlib>
#include <pthread.h>
#endif

namespace rapt {
namespace {

void check_thread_count(int threads) {
  if (threads >= 0 && threads <= core::kMaxThreads) return;
  throw Error("set_thread_count: " + std::to_string(threads) + " threads were requested; give 1 to " +
              std::to_string(core::kMaxThreads) + ", or 0 for the default");
}

}  // namespace

#if defined(RAPT_SINGLE_THREAD)  // a platform without threads, such as plain WebAssembly

namespace core {

void parallel_for(std::int64_t count, const Task& task, int /*max_threads*/) {
  std::exception_ptr first_error;
  for (std::int64_t index = 0; index < count; ++index) {
    try {
      task(index);
    } catch (...) {
      if (!first_error) first_error = std::current_exception();
    }
  }
  if (first_error) std::rethrow_exception(first_error);
}

}  // namespace core

int thread_count() { return 1; }

void set_thread_count(int threads) { check_thread_count(threads); }

#else

namespace {

// All process-wide state is in atomics with constant initialization and no destructor. So parallel_for works before the
// first static object is constructed and after the last is destroyed, and a fork at any point leaves no lock held in
// the child.
constinit std::atomic<core::ThreadPool*> the_pool = nullptr;
constinit std::atomic<core::ThreadPool*> parents_pool = nullptr;  // in a forked child: kept but never used
constinit std::atomic<bool> exiting = false;
constinit std::atomic<int> default_threads = 0;  // 0: not known yet
constinit std::atomic<int> chosen_threads = 0;   // 0: the default

core::ThreadPool& pool() {
  core::ThreadPool* existing = the_pool.load(std::memory_order_acquire);
  if (existing != nullptr) return *existing;
  auto* fresh = new core::ThreadPool(core::available_cpus(), parents_pool.load());
  if (the_pool.compare_exchange_strong(existing, fresh, std::memory_order_acq_rel)) return *fresh;
  delete fresh;  // another thread won the race
  return *existing;
}

// A forked child has only the thread that called fork. The parent's pool has lost its threads and may have an
// unfinished job, so the child abandons it. The child creates its own pool on demand, and counts the available cores
// again, because servers often pin each worker process. (A task that forks must not return in the child, because its
// job cannot finish there.)
void start_over_in_child() {
  core::ThreadPool* pool_of_parent = the_pool.exchange(nullptr);
  if (pool_of_parent != nullptr) parents_pool.store(pool_of_parent);
  default_threads.store(0);
  core::reset_task_after_fork();
}

// Joins the threads at exit and when this shared library is unloaded, because a spinning thread must not outlive the
// code it runs. The pool object stays, because another thread may be reading it. From then on everything runs serially.
struct Lifetime {
  Lifetime() { pthread_atfork(nullptr, nullptr, start_over_in_child); }
  ~Lifetime() {
    exiting.store(true);
    core::ThreadPool* existing = the_pool.load();
    if (existing != nullptr) existing->shut_down();
  }
  Lifetime(const Lifetime&) = delete;
  Lifetime& operator=(const Lifetime&) = delete;
};
const Lifetime lifetime;

int find_default_threads() {
  const char* wish = std::getenv("RAPT_NUM_THREADS");
  if (wish != nullptr) {
    if (const auto threads = core::parse_thread_count(wish)) return *threads;
  }
  return core::available_cpus();
}

}  // namespace

namespace core {

void parallel_for(std::int64_t count, const Task& task, int max_threads) {
  if (count <= 0) return;
  Job job(count, task);
  const auto threads = static_cast<int>(std::min<std::int64_t>(count, std::min(max_threads, kMaxThreads)));
  const bool alone = threads <= 1 || in_task() || exiting.load(std::memory_order_relaxed);
  // If another thread is using the pool, this call runs serially. It never waits, so it cannot deadlock.
  if (alone || !pool().try_run(job, threads - 1)) job.work();
  job.rethrow_error();
}

}  // namespace core

int thread_count() {
  const int chosen = chosen_threads.load(std::memory_order_relaxed);
  if (chosen > 0) return chosen;
  int threads = default_threads.load(std::memory_order_relaxed);
  if (threads == 0) {  // a race is harmless, because both threads find the same value
    threads = find_default_threads();
    default_threads.store(threads, std::memory_order_relaxed);
  }
  return threads;
}

void set_thread_count(int threads) {
  check_thread_count(threads);
  chosen_threads.store(threads, std::memory_order_relaxed);
}

#endif

const ParallelFor& core::pool_function() {
  // Never destroyed, so that it serves calls while static objects are destroyed; not on the heap, where leak checkers
  // would report it. The limit is kMaxThreads, because a call submits no more tasks than it may use threads.
  alignas(ParallelFor) static std::byte memory[sizeof(ParallelFor)];
  static const ParallelFor& kPool = *new (memory) ParallelFor(
      [](std::int64_t count, const Task& task) { core::parallel_for(count, task, kMaxThreads); });
  return kPool;
}

Workers core::pool_workers(int threads) {
  return {std::min(threads > 0 ? threads : thread_count(), kMaxThreads), &pool_function()};
}

void parallel_for(std::int64_t count, const Task& task) { core::parallel_for(count, task, thread_count()); }

}  // namespace rapt
