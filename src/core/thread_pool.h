// The mechanism under rapt::parallel_for: a job is a counter that threads take indices from; a pool is a set of threads
// that sleep between jobs. Which pool there is, and how many threads it may use, is decided in parallel.cc.
#pragma once

#include <array>
#include <atomic>
#include <cfenv>
#include <chrono>
#include <cstdint>
#include <exception>
#include <mutex>
#include <pthread.h>

#include "core/cpu_limits.h"
#include "core/sleeper.h"
#include "rapt/parallel.h"

namespace rapt::core {

// parallel_for with a limit of its own: at most max_threads threads, the calling one included.
void parallel_for(std::int64_t count, const Task& task, int max_threads);

// Whether the calling thread is running a task now.
bool in_task();
void forget_task_after_fork();

// The indices 0 … count − 1, each handed out once to whichever thread asks next.
class Job {
 public:
  Job(std::int64_t count, const Task& task) : count_(count), task_(task) { std::fegetenv(&float_mode_); }

  // Gives a helper the floating-point mode of the thread that called parallel_for: rounding, and whether subnormals are
  // kept. Bits must not depend on which thread runs a task.
  void enter_float_mode() const { std::fesetenv(&float_mode_); }

  // Runs tasks until none is left to start. A task that throws does not stop the others: which tasks ran must not
  // depend on how many threads there were.
  void work();

  // Rethrows the exception of the lowest index that threw, whichever came first in time: it is the one that a serial
  // run would give. Call when every thread has come back from work().
  void rethrow_error() const;

 private:
  void record_error(std::int64_t index);

  const std::int64_t count_;
  const Task& task_;
  std::fenv_t float_mode_;
  alignas(64) std::atomic<std::int64_t> next_ = 0;
  std::mutex error_mutex_;
  std::int64_t error_index_ = 0;
  std::exception_ptr error_;
};

// Threads that help with one job at a time. Never destroyed: see parallel.cc.
class ThreadPool {
 public:
  // `abandoned` is the parent's pool in a forked child. It is only kept, so that a leak checker finds it.
  ThreadPool(int cpus, const ThreadPool* abandoned);
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  // Runs the job on this thread and up to `helpers` others, and returns when all of them have left it. Returns false,
  // and touches nothing, where the pool is taken by another thread's job.
  bool try_run(Job& job, int helpers);

  // Ends the threads and refuses later jobs. Where a job is running, only gives up: this must never wait for a task.
  void shut_down();

 private:
  void start_threads(std::uint32_t wanted) noexcept;
  void serve();
  bool enter();
  void leave();
  void close_and_wait();
  void spin_while_equal(const std::atomic<std::uint32_t>& word, std::uint32_t value,
                        std::chrono::microseconds time) const;

  // The gate holds how many helpers are inside the job, and whether more may enter. A helper reads job_ and seats_ only
  // while inside, and the owner writes them only while the gate is closed and nobody is inside. So a helper that wakes
  // late finds a closed gate, and the owner never waits for one that is still asleep.
  static constexpr std::uint32_t kClosed = 1U << 31;

  alignas(64) std::atomic<std::uint32_t> epoch_ = 0;  // raised for every job: idle threads wait for it to change
  alignas(64) std::atomic<std::uint32_t> gate_ = kClosed;
  Job* job_ = nullptr;
  std::uint32_t seats_ = 0;

  // Of each thread, on its stack; set once it has begun to serve.
  std::array<std::atomic<Sleeper*>, kMaxThreads> sleepers_{};
  std::atomic<std::uint32_t> served_ = 0;

  alignas(64) std::atomic<bool> busy_ = false;  // some thread owns the pool, and with it all that follows
  // Not std::thread, which keeps heap memory that only the new thread's stack knows: in a forked child that is a leak.
  std::array<pthread_t, kMaxThreads> threads_{};
  std::uint32_t thread_count_ = 0;
  std::atomic<std::uint32_t> epoch_at_start_ = 0;
  std::atomic<bool> may_spin_ = false;
  std::atomic<bool> stopping_ = false;
  const int cpus_;
  const bool few_cores_;
  [[maybe_unused]] const ThreadPool* const abandoned_;
};

}  // namespace rapt::core
