// Rewords the library's errors for the command line.
#pragma once

#include <string>

#include "rapt/error.h"

namespace rapt::cli {

// The message without the name of the function; an error about a file stays unchanged.
std::string without_function(const Error& error);

// The message with flags in place of the names of options: --key-lengths for key_lengths. `mask` is the file of --mask.
std::string with_flags(const Error& error, const std::string& mask);

}  // namespace rapt::cli
