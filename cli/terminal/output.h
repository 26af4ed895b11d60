// Output: results to stdout, progress and messages to stderr.
#pragma once

#include <cstdio>
#include <string>

namespace rapt::cli {

// "" clears the line. Prints nothing if stderr is not a terminal, because progress would fill a log.
void show_progress(const std::string& now);

void print(const std::string& text);

// To stderr, as "rapt: …".
void complain(const std::string& what);

// On a terminal, lines are wrapped between words.
std::string fitted(std::FILE* file, const std::string& text);

}  // namespace rapt::cli
