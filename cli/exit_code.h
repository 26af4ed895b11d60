// What the command tells the shell, and the error that ends it.
#pragma once

#include <stdexcept>

namespace rapt::cli {

enum class ExitCode : int {
  good = 0,
  failed = 1,
  wrong_usage = 2,
  numbers_differ = 3,
  interrupted = 130,  // as a shell has it for Ctrl-C
};

// What was asked for on the command line cannot be done: printed as "rapt: …", exit code 2.
class UsageError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

}  // namespace rapt::cli
