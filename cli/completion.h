// `rapt completion` and `rapt man`: generated from the options, so that they are always up to date.
#pragma once

#include <string>

#include "cli/command_info.h"

namespace rapt::cli {

class Command;

Command add_completion(Command& rapt, std::string& shell);
Command add_man(Command& rapt);

std::string bash_completion(const CommandInfo& root);
std::string zsh_completion(const CommandInfo& root);
std::string man_page(const CommandInfo& root);

}  // namespace rapt::cli
