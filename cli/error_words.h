// What the library says of a bad call, in the words of the command line.
#pragma once

#include <string>

#include "rapt/error.h"

namespace rapt::cli {

// Without the function that says it; as it is where it speaks of a file.
std::string without_function(const Error& error);

// With flags where it names options: --key-lengths for key_lengths. `mask` is the file of --mask.
std::string with_flags(const Error& error, const std::string& mask);

}  // namespace rapt::cli
