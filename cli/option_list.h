// `rapt options`: the table of options as a list, or the full entries of the options whose name contains a word.
#pragma once

#include <string>

#include "cli/exit_code.h"

namespace rapt::cli {

class Command;

struct OptionListOptions {
  std::string word;  // part of a name, in any interface
  bool json = false;
};

Command add_option_list(Command& rapt, OptionListOptions& options);
ExitCode run_option_list(const OptionListOptions& options);

}  // namespace rapt::cli
