// `rapt view`: the explorer, opened in a browser or written to a file.
#pragma once

#include <string>
#include <vector>

#include "cli/command.h"
#include "cli/exit_code.h"

namespace rapt::cli {

struct ViewOptions {
  std::vector<std::string> files;
  std::string out;  // the file to write; empty: opens a browser
};

Command add_view(Command& rapt, ViewOptions& options);
ExitCode run_view(const ViewOptions& options);

}  // namespace rapt::cli
