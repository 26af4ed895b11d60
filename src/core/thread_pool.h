// The mechanism under rapt::parallel_for. A job is a counter from which threads take task indices; a pool is a set of
// threads that sleep between jobs. parallel.cc decides which pool is used and with how many threads.
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

// parallel_for on at most max_threads threads, including the calling one.
void parallel_for(std::int64_t count, const Task& task, int max_threads);

// Whether the calling thread is currently running a task.
bool in_task();
void reset_task_after_fork();

// Hands out the task indices 0 … count − 1, each once, to the next thread that asks.
class Job {
 public:
  Job(std::int64_t count, const Task& task) : count_(count), task_(task) { std::fegetenv(&float_mode_); }

  // Sets the floating-point mode of a worker thread to that of the thread that called parallel_for: rounding, and
  // whether subnormals are kept. Bits must not depend on which thread runs a task.
  void enter_float_mode() const { std::fesetenv(&float_mode_); }

  // Runs tasks until none is left to start. A task that throws does not stop the others, because the set of tasks that
  // run must not depend on the number of threads.
  void work();

  // Rethrows the exception of the lowest index that threw, regardless of timing: the same one as in a serial run. Call
  // after every thread has returned from work().
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

// Worker threads that run one job at a time. Never destroyed: see parallel.cc.
class ThreadPool {
 public:
  // `abandoned` is the parent's pool in a forked child. It is stored only to keep it reachable for leak checkers.
  ThreadPool(int cpus, const ThreadPool* abandoned);
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  // Runs the job on this thread and up to `workers` worker threads, and returns when all of them have left it. Returns
  // false, with no side effects, if another thread's job is using the pool.
  bool try_run(Job& job, int workers);

  // Joins the threads and rejects later jobs. Does nothing if a job is running, because shutting down must never wait
  // for a task.
  void shut_down();

 private:
  void start_threads(std::uint32_t wanted) noexcept;
  void serve();
  bool enter();
  void leave();
  void close_and_wait();
  void spin_while_equal(const std::atomic<std::uint32_t>& word, std::uint32_t value,
                        std::chrono::microseconds time) const;

  // The gate holds the number of worker threads inside the job, and whether more may enter. A worker reads job_ and
  // seats_ only while inside. The owner, the thread that started the job, writes them only while the gate is closed and
  // no worker is inside. So a worker that wakes late finds the gate closed, and the owner never waits for a sleeping
  // worker.
  static constexpr std::uint32_t kClosed = 1U << 31;

  alignas(64) std::atomic<std::uint32_t> epoch_ = 0;  // incremented for every job; idle threads wait for a change
  alignas(64) std::atomic<std::uint32_t> gate_ = kClosed;
  Job* job_ = nullptr;
  std::uint32_t seats_ = 0;

  // One per thread, on its stack; set once the thread has started.
  std::array<std::atomic<Sleeper*>, kMaxThreads> sleepers_{};
  std::atomic<std::uint32_t> served_ = 0;

  alignas(64) std::atomic<bool> busy_ = false;  // some thread owns the pool and all fields below
  // Not std::thread, because it holds heap memory that only the new thread's stack refers to: a leak in a forked child.
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
