// Controls on which core a sleeping worker thread wakes up.
//
// The kernel may wake a thread on the waker's core although another core is idle; on some virtual machines with two
// cores it does so almost always. The thread then waits until the waker has done all the work alone.
#pragma once

#include <atomic>
#if defined(__linux__)
#include <pthread.h>
#include <sched.h>
#endif

namespace rapt::core {

class Sleeper {
 public:
  // Called by the thread itself before and after it sleeps.
  void fall_asleep();
  void wake_up();

  // Called by the waker: excludes the caller's core from the thread's affinity until the thread is awake. Does nothing
  // if the thread is awake, if its affinity was already changed, or if it has no other core.
  void exclude_cpu();
  // Restores the affinity of a thread that is still asleep.
  void restore_affinity();

#if defined(__linux__)
 private:
  enum class State { awake, asleep, being_moved, moved };

  std::atomic<State> state_ = State::awake;
  // thread_ is written only by the thread itself while it is awake, cores_ only by the thread that moves it.
  pthread_t thread_{};
  cpu_set_t cores_{};  // while moved: the affinity to restore
#endif
};

}  // namespace rapt::core
