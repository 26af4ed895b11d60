// `rapt inspect`: the tensors of a file, and the attention layers among them.
#pragma once

#include <string>

#include <CLI/CLI.hpp>

#include "exit_code.h"

namespace rapt::cli {

struct InspectOptions {
  std::string file;
  bool statistics = false;     // whatever the size
  bool no_statistics = false;  // whatever the size
  bool json = false;
};

CLI::App* add_inspect(CLI::App& app, InspectOptions& options);
ExitCode run_inspect(const InspectOptions& options);

}  // namespace rapt::cli
