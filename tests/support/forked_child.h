// Something checked in a forked child: a process that has the parent's memory and only one of its threads.
#pragma once

#include <chrono>
#include <signal.h>  // NOLINT(modernize-deprecated-headers): kill is POSIX
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

#include "support/sanitizers.h"

namespace rapt::test {

enum class ChildsAnswer { kYes, kNo, kNone };

// Runs `check` in a forked child, and says what it returned there. None where the child has not ended after half a
// minute; a crash is a no.
template <class Check>
ChildsAnswer ask_forked_child(const Check& check) {
  const pid_t child = ::fork();
  if (child == 0) {
    bool held = false;
    try {
      held = check();
    } catch (...) {
      held = false;
    }
    ::_exit(held ? 0 : 1);
  }
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  int status = 0;
  while (::waitpid(child, &status, WNOHANG) == 0) {
    if (std::chrono::steady_clock::now() > deadline) {
      ::kill(child, SIGKILL);
      ::waitpid(child, &status, 0);
      return ChildsAnswer::kNone;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? ChildsAnswer::kYes : ChildsAnswer::kNo;
}

// True where `check` returned true in a forked child, false where it did not, crashed or hung. AddressSanitizer's heap
// may be locked in a child for good, by a thread of the parent that was just starting: there, and only there, a child
// that hangs is asked again.
template <class Check>
bool holds_in_forked_child(const Check& check) {
  const int tries = kAddressSanitizer ? 4 : 1;
  for (int turn = 0; turn < tries; ++turn) {
    const ChildsAnswer answer = ask_forked_child(check);
    if (answer != ChildsAnswer::kNone) return answer == ChildsAnswer::kYes;
  }
  return false;
}

}  // namespace rapt::test
