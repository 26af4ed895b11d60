// Where a sleeping thread wakes up.
//
// A kernel may wake a thread on the core of whoever wakes it, though another core is idle: some virtual machines with
// two cores do so nearly always. The thread then waits until its waker has done all the work alone.
#pragma once

#include <atomic>
#if defined(__linux__)
#include <pthread.h>
#include <sched.h>
#endif

namespace rapt::core {

class Sleeper {
 public:
  // The thread itself calls these before and after it sleeps.
  void fall_asleep();
  void wake_up();

  // Whoever is about to wake it calls this: until it is awake it may run on every core that it might before, but for
  // the caller's. Nothing happens where it is awake, is moved already, or has no other core.
  void make_way();
  // The way back, for one that slept on: it may run where it might before.
  void stay();

#if defined(__linux__)
 private:
  enum class State { awake, asleep, being_moved, moved };

  std::atomic<State> state_ = State::awake;
  // Written only by the thread while it is awake, and by whoever moves it.
  pthread_t thread_{};
  cpu_set_t cores_{};  // while it is moved: those that it gets back
#endif
};

}  // namespace rapt::core
