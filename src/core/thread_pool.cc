#include "core/thread_pool.h"

#if !defined(RAPT_SINGLE_THREAD)
#include <algorithm>
#include <chrono>
#include <pthread.h>
#include <sched.h>
#include <signal.h>  // NOLINT(modernize-deprecated-headers): pthread_sigmask is POSIX

namespace rapt::core {
namespace {

// How long an idle thread spins before it sleeps: long enough to bridge the serial code between two parallel steps of
// one layer, short enough that an idle program shows no load.
constexpr std::chrono::microseconds kSpinTime{30};
// How long the owner of a job spins while it waits for the next worker thread to finish its last task. The owner is not
// idle, and if it slept here it might wake on a worker's core.
constexpr std::chrono::microseconds kWatchTime{2000};
// With at most this many cores, worker threads are kept from waking on the owner's core. With more, the kernel finds an
// idle core by itself, and changing the affinity costs 6 to 8 microseconds per worker.
constexpr int kFewCores = 4;

thread_local bool this_thread_in_task = false;

// A thread inherits the signal mask of its creator. Worker threads must not handle the program's signals, except faults
// raised by their own instructions and the signals of profilers.
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

ThreadPool::ThreadPool(int cpus, const ThreadPool* abandoned)
    : cpus_(cpus), few_cores_(cpus_in_affinity() <= kFewCores), abandoned_(abandoned) {}

bool in_task() { return this_thread_in_task; }

void reset_task_after_fork() { this_thread_in_task = false; }

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

bool ThreadPool::try_run(Job& job, int workers) {
  if (busy_.load(std::memory_order_relaxed) || busy_.exchange(true, std::memory_order_acquire)) return false;
  seats_ = static_cast<std::uint32_t>(std::min(workers, kMaxThreads));
  job_ = &job;
  start_threads(seats_);
  gate_.store(0, std::memory_order_release);
  const auto for_each_sleeper = [this](void (Sleeper::*act)()) {
    if (!few_cores_ || !may_spin_.load(std::memory_order_relaxed)) return;
    for (std::uint32_t n = 0; n < thread_count_; ++n) {
      if (Sleeper* sleeper = sleepers_[n].load(std::memory_order_acquire)) (sleeper->*act)();
    }
  };
  for_each_sleeper(&Sleeper::exclude_cpu);
  epoch_.fetch_add(1);
  if (thread_count_ <= seats_) {
    epoch_.notify_all();
  } else {
    for (std::uint32_t seat = 0; seat < seats_; ++seat) epoch_.notify_one();
  }
  job.work();
  close_and_wait();
  for_each_sleeper(&Sleeper::restore_affinity);  // threads that were not woken, or woken too late
  busy_.store(false, std::memory_order_release);
  return true;
}

void ThreadPool::start_threads(std::uint32_t wanted) noexcept {
  if (thread_count_ >= wanted) return;   // surplus threads find no seat and sleep again
  epoch_at_start_.store(epoch_.load());  // before the job is published, so that a new thread does not miss it
  const auto run = [](void* pool) -> void* {
    static_cast<ThreadPool*>(pool)->serve();
    return nullptr;
  };
  const BlockSignals block_signals;
  while (thread_count_ < wanted) {
    if (pthread_create(&threads_[thread_count_], nullptr, run, this) != 0) break;  // fewer threads run the job
    ++thread_count_;
  }
  // With more threads than cores, a spinning thread takes CPU time from a working one.
  may_spin_.store(static_cast<int>(thread_count_) < cpus_, std::memory_order_relaxed);
}

// The main loop of a worker thread.
void ThreadPool::serve() {
  std::uint32_t seen = epoch_at_start_.load();  // the last epoch that this thread need not handle
  Sleeper sleeper;
  sleepers_[served_.fetch_add(1)].store(&sleeper, std::memory_order_release);
  for (;;) {
    spin_while_equal(epoch_, seen, kSpinTime);
    sleeper.fall_asleep();
    epoch_.wait(seen);
    sleeper.wake_up();
    seen = epoch_.load();
    if (stopping_.load()) return;
    if (!enter()) continue;
    job_->enter_float_mode();
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
    spin_while_equal(gate_, gate, kWatchTime);
    gate_.wait(gate);
    gate = gate_.load();
  }
}

void ThreadPool::spin_while_equal(const std::atomic<std::uint32_t>& word, std::uint32_t value,
                                  std::chrono::microseconds time) const {
  if (!may_spin_.load(std::memory_order_relaxed)) return;
  const auto start = std::chrono::steady_clock::now();
  for (auto now = start; now < start + time; now = std::chrono::steady_clock::now()) {
    for (int turn = 0; turn < 16; ++turn) {
      if (word.load(std::memory_order_relaxed) != value) return;
      relax_cpu();
    }
    if (now > start + kSpinTime) sched_yield();  // the thread it waits for may have no core
  }
}

void ThreadPool::shut_down() {
  if (busy_.exchange(true, std::memory_order_acquire)) return;
  stopping_.store(true);
  epoch_.fetch_add(1);
  epoch_.notify_all();
  while (thread_count_ > 0) pthread_join(threads_[--thread_count_], nullptr);
}

}  // namespace rapt::core

#endif
