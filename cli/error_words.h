// Rewords the library's errors for the command line.
#pragma once

#include <string>

#include "rapt/error.h"

namespace rapt::cli {

// Without the name of the function; unchanged if it is about a file.
std::string without_function(const Error& error);

// With flags where it names options: --key-lengths for key_lengths. `mask` is the file of --mask.
std::string with_flags(const Error& error, const std::string& mask);

}  // namespace rapt::cli
