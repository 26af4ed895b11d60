// `rapt check`: does this build compute the right numbers on this machine?
#pragma once

#include "cli/check/check_run.h"
#include "cli/exit_code.h"

namespace rapt::cli {

class Command;

struct CheckOptions {
  CheckPlan plan{.random = 200};
  bool json = false;
  bool digest = false;       // prints digests of all bits instead
  bool bits = false;         // computes the same rows in other ways and compares bits instead
  bool tensor_core = false;  // checks the GPU's tensor cores instead
};

Command add_check(Command& rapt, CheckOptions& options);
ExitCode run_check_command(const CheckOptions& options);

}  // namespace rapt::cli
