// SIGINT and SIGTERM as a flag that loops can poll.
#pragma once

#include <csignal>

namespace rapt::cli {

// During the lifetime of this object, the first SIGINT or SIGTERM sets the flag; the second ends the process.
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
