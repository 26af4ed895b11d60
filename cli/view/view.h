// `rapt view`: the explorer, opened in a browser or served to one on this machine.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cli/command.h"
#include "cli/exit_code.h"

namespace rapt::cli {

struct ViewOptions {
  std::vector<std::string> files;
  std::string out;
  bool serve = false;
  std::int64_t port = 0;  // 0: one that is free
};

Command add_view(Command& rapt, ViewOptions& options);
ExitCode run_view(const ViewOptions& options);

}  // namespace rapt::cli
