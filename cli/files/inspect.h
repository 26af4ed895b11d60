// `rapt inspect`: the tensors of a file, and the attention layers among them.
#pragma once

#include <string>

#include "cli/exit_code.h"

namespace rapt::cli {

class Command;

struct InspectOptions {
  std::string file;
  bool statistics = false;     // regardless of size
  bool no_statistics = false;  // regardless of size
  bool json = false;
};

Command add_inspect(Command& rapt, InspectOptions& options);
ExitCode run_inspect(const InspectOptions& options);

}  // namespace rapt::cli
