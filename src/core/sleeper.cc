#include "core/sleeper.h"

#include <cstddef>

namespace rapt::core {

#if defined(__linux__)

void Sleeper::fall_asleep() {
  thread_ = pthread_self();
  state_.store(State::asleep, std::memory_order_release);
}

void Sleeper::wake_up() {
  State was = state_.load(std::memory_order_acquire);
  while (was == State::being_moved || !state_.compare_exchange_weak(was, State::awake, std::memory_order_acq_rel)) {
    sched_yield();  // the thread that is moving it may be waiting for this core
    was = state_.load(std::memory_order_acquire);
  }
  if (was == State::moved) pthread_setaffinity_np(pthread_self(), sizeof(cores_), &cores_);
}

void Sleeper::exclude_cpu() {
  State was = State::asleep;
  if (!state_.compare_exchange_strong(was, State::being_moved, std::memory_order_acq_rel)) return;
  const int here = sched_getcpu();
  State now = State::asleep;
  if (here >= 0 && here < CPU_SETSIZE && pthread_getaffinity_np(thread_, sizeof(cores_), &cores_) == 0) {
    cpu_set_t others = cores_;
    CPU_CLR(static_cast<std::size_t>(here), &others);
    if (CPU_COUNT(&others) > 0 && pthread_setaffinity_np(thread_, sizeof(others), &others) == 0) now = State::moved;
  }
  state_.store(now, std::memory_order_release);
}

void Sleeper::restore_affinity() {
  State was = State::moved;
  if (!state_.compare_exchange_strong(was, State::being_moved, std::memory_order_acq_rel)) return;
  pthread_setaffinity_np(thread_, sizeof(cores_), &cores_);
  state_.store(State::asleep, std::memory_order_release);
}

#else

void Sleeper::fall_asleep() {}
void Sleeper::wake_up() {}
void Sleeper::exclude_cpu() {}
void Sleeper::restore_affinity() {}

#endif

}  // namespace rapt::core
