// What `--help` prints: from the options themselves, in the width of the terminal.
#pragma once

#include <string>

#include "cli/command_info.h"

namespace rapt::cli {

std::string help_text(const CommandInfo& command, int width);

}  // namespace rapt::cli
