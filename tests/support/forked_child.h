// Runs a check in a forked child: a process with a copy of the parent's memory and only one of its threads.
#pragma once

#include <chrono>
#include <signal.h>  // NOLINT(modernize-deprecated-headers): kill is POSIX
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

#include "support/sanitizers.h"

namespace rapt::test {

enum class ChildsAnswer { kYes, kNo, kNone };

// Runs `check` in a forked child and returns its result; none if the child has not ended after half a minute, false if
// it crashed.
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

// Whether `check` returned true in a forked child; false if it crashed or hung. Under AddressSanitizer, the heap of the
// child may stay locked by a thread of the parent that was just starting, so only there a child that hangs is retried.
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
