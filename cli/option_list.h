// `rapt options`: the table of options, as a list or, for those that a word is in, in full.
#pragma once

#include <string>

#include "cli/exit_code.h"

namespace rapt::cli {

class Command;

struct OptionListOptions {
  std::string word;  // a part of a name, in any of the ways to call rapt
  bool json = false;
};

Command add_option_list(Command& rapt, OptionListOptions& options);
ExitCode run_option_list(const OptionListOptions& options);

}  // namespace rapt::cli
