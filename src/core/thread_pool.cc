#include "core/thread_pool.h"

#if !defined(RAPT_SINGLE_THREAD)
#include <algorithm>
#include <chrono>
#include <new>
#include <pthread.h>
#include <signal.h>  // NOLINT(modernize-deprecated-headers): pthread_sigmask is POSIX
#include <system_error>

#include "core/cpu_limits.h"

namespace rapt::core {
namespace {

// Long enough to bridge the serial code between two parallel steps of one layer, short enough that an idle program
// shows no load.
constexpr std::chrono::microseconds kSpinTime{30};

thread_local bool this_thread_in_task = false;

// A thread inherits the signal mask of its creator. Signals belong to the program's threads, not to ours, except those
// that our own instructions raise and those of profilers.
class BlockSignals {
 public:
  BlockSignals() {
    sigset_t blocked;
    sigfillset(&blocked);
    for (const int kept : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT, SIGSYS, SIGPROF}) {
      sigdelset(&blocked, kept);
    }
    pthread_sigmask(SIG_SETMASK, &blocked, &before_);
  }
  ~BlockSignals() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  BlockSignals(const BlockSignals&) = delete;
  BlockSignals& operator=(const BlockSignals&) = delete;

 private:
  sigset_t before_{};
};

}  // namespace

bool in_task() { return this_thread_in_task; }

void forget_task_after_fork() { this_thread_in_task = false; }

void Job::work() {
  const bool was_in_task = this_thread_in_task;
  this_thread_in_task = true;
  for (;;) {
    const std::int64_t index = next_.fetch_add(1, std::memory_order_relaxed);
    if (index >= count_) break;
    try {
      task_(index);
    } catch (...) {
      record_error(index);
    }
  }
  this_thread_in_task = was_in_task;
}

void Job::record_error(std::int64_t index) {
  const std::lock_guard lock(error_mutex_);
  if (error_ && error_index_ < index) return;
  error_ = std::current_exception();
  error_index_ = index;
}

void Job::rethrow_error() const {
  if (error_) std::rethrow_exception(error_);
}

bool ThreadPool::try_run(Job& job, int helpers) {
  if (busy_.load(std::memory_order_relaxed) || busy_.exchange(true, std::memory_order_acquire)) return false;
  start_threads(helpers);
  job_ = &job;
  seats_ = static_cast<std::uint32_t>(helpers);
  gate_.store(0, std::memory_order_release);
  epoch_.fetch_add(1);
  if (threads_.size() <= seats_) {
    epoch_.notify_all();
  } else {
    for (std::uint32_t seat = 0; seat < seats_; ++seat) epoch_.notify_one();
  }
  job.work();
  close_and_wait();
  busy_.store(false, std::memory_order_release);
  return true;
}

void ThreadPool::start_threads(int wanted) {
  const auto size = static_cast<std::size_t>(wanted);
  if (threads_.size() >= size) return;  // more than wanted: the others find no seat and sleep on
  const BlockSignals block_signals;
  try {
    threads_.reserve(size);
    while (threads_.size() < size) {
      threads_.emplace_back([this, seen = epoch_.load()] { serve(seen); });
    }
  } catch (const std::system_error&) {  // no more threads to be had: the job gets by with fewer
  } catch (const std::bad_alloc&) {
  }
  // With more threads than cores, a spinning thread only takes time from one that works.
  may_spin_.store(static_cast<int>(threads_.size()) < available_cpus(), std::memory_order_relaxed);
}

// What a thread of the pool does all its life. `seen` is the last epoch it need not look at.
void ThreadPool::serve(std::uint32_t seen) {
  for (;;) {
    spin_while_equal(epoch_, seen);
    epoch_.wait(seen);
    seen = epoch_.load();
    if (stopping_.load()) return;
    if (!enter()) continue;
    job_->work();
    leave();
  }
}

bool ThreadPool::enter() {
  std::uint32_t inside = gate_.load(std::memory_order_relaxed);
  do {
    if ((inside & kClosed) != 0) return false;
  } while (!gate_.compare_exchange_weak(inside, inside + 1, std::memory_order_acq_rel, std::memory_order_relaxed));
  if (inside < seats_) return true;
  leave();
  return false;
}

void ThreadPool::leave() {
  if (gate_.fetch_sub(1) == (kClosed | 1)) gate_.notify_one();
}

void ThreadPool::close_and_wait() {
  std::uint32_t gate = gate_.fetch_or(kClosed) | kClosed;
  while (gate != kClosed) {
    spin_while_equal(gate_, gate);
    gate_.wait(gate);
    gate = gate_.load();
  }
}

void ThreadPool::spin_while_equal(const std::atomic<std::uint32_t>& word, std::uint32_t value) const {
  if (!may_spin_.load(std::memory_order_relaxed)) return;
  const auto deadline = std::chrono::steady_clock::now() + kSpinTime;
  do {
    for (int turn = 0; turn < 16; ++turn) {
      if (word.load(std::memory_order_relaxed) != value) return;
      relax_cpu();
    }
  } while (std::chrono::steady_clock::now() < deadline);
}

void ThreadPool::shut_down() {
  if (busy_.exchange(true, std::memory_order_acquire)) return;
  stopping_.store(true);
  epoch_.fetch_add(1);
  epoch_.notify_all();
  for (std::thread& thread : threads_) thread.join();
  threads_.clear();
}

}  // namespace rapt::core

#endif
