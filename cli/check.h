// `rapt check`: does this build compute the right numbers on this machine?
#pragma once

#include <CLI/CLI.hpp>

#include "check_run.h"
#include "exit_code.h"

namespace rapt::cli {

struct CheckOptions {
  CheckPlan plan{.random = 200};
  bool json = false;
};

CLI::App* add_check(CLI::App& app, CheckOptions& options);
ExitCode run_check_command(const CheckOptions& options);

}  // namespace rapt::cli
