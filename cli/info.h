// `rapt info`: what this build can do on this machine, and what it would use.
#pragma once

#include <CLI/CLI.hpp>

#include "exit_code.h"

namespace rapt::cli {

struct InfoOptions {
  bool json = false;
};

CLI::App* add_info(CLI::App& app, InfoOptions& options);
ExitCode run_info(const InfoOptions& options);

}  // namespace rapt::cli
