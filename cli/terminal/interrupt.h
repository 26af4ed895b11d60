// Ctrl-C, and a polite request to end, as a question that a loop may ask.
#pragma once

#include <csignal>

namespace rapt::cli {

// While one of these lives, the first SIGINT or SIGTERM is noted; the second ends the process as ever.
class Interrupt {
 public:
  Interrupt();
  Interrupt(const Interrupt&) = delete;
  Interrupt& operator=(const Interrupt&) = delete;
  ~Interrupt();

  static bool asked();

 private:
  struct sigaction before_int_ {
  }, before_term_{};
};

}  // namespace rapt::cli
