// `rapt info`: what this build can do on this machine, and what it would use.
#pragma once

#include "cli/exit_code.h"

namespace rapt::cli {

class Command;

struct InfoOptions {
  bool json = false;
};

Command add_info(Command& rapt, InfoOptions& options);
ExitCode run_info(const InfoOptions& options);

}  // namespace rapt::cli
