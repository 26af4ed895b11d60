// g++'s C++ library, in its headers and its static part, expects this machine's glibc. These are the symbols that it
// uses but that glibc 2.28 lacks. A missing symbol is a linker error, so the list cannot become incomplete unnoticed.
#include <cstdlib>
#include <ctime>
#include <pthread.h>
#include <unistd.h>

#define RAPT_HIDDEN __attribute__((visibility("hidden")))

extern "C" {

// glibc 2.32: whether the C++ library may skip atomic instructions. It may not, which is always correct.
RAPT_HIDDEN char __libc_single_threaded = 0;

// glibc 2.36: the source of std::random_device.
RAPT_HIDDEN unsigned arc4random() {
  unsigned value = 0;
  if (getentropy(&value, sizeof value) != 0) std::abort();
  return value;
}

// glibc 2.30: std::condition_variable::wait_for calls it with the steady clock. Here it waits by the system's clock, as
// the C++ library does with an older glibc; if that clock is set during a wait, the wait becomes shorter or longer.
RAPT_HIDDEN int pthread_cond_clockwait(pthread_cond_t* condition, pthread_mutex_t* mutex, clockid_t clock,
                                       const timespec* end) {
  timespec now{};
  timespec until{};
  clock_gettime(clock, &now);
  clock_gettime(CLOCK_REALTIME, &until);
  until.tv_sec += end->tv_sec - now.tv_sec;
  until.tv_nsec += end->tv_nsec - now.tv_nsec;
  constexpr long kSecond = 1'000'000'000;
  if (until.tv_nsec < 0) {
    until.tv_nsec += kSecond;
    --until.tv_sec;
  } else if (until.tv_nsec >= kSecond) {
    until.tv_nsec -= kSecond;
    ++until.tv_sec;
  }
  return pthread_cond_timedwait(condition, mutex, &until);
}
}
