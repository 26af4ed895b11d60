// Exit codes, and the error for invalid usage.
#pragma once

#include <stdexcept>

namespace rapt::cli {

enum class ExitCode : int {
  good = 0,
  failed = 1,
  wrong_usage = 2,
  numbers_differ = 3,
  interrupted = 130,  // 128 + SIGINT
};

// The command line requests something impossible: printed as "rapt: …", exit code 2.
class UsageError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

}  // namespace rapt::cli
