// The output of `--help`, generated from the options and wrapped to the terminal.
#pragma once

#include <string>

#include "cli/command_info.h"

namespace rapt::cli {

std::string help_text(const CommandInfo& command, int width);

}  // namespace rapt::cli
