// Text to where it belongs: results to stdout, what goes on meanwhile to stderr.
#pragma once

#include <cstdio>
#include <string>

namespace rapt::cli {

// "" ends the line. On anything but a terminal there is no line: a log should not hold a hundred of them.
void show_progress(const std::string& now);

void print(const std::string& text);

// To stderr, as "rapt: …".
void complain(const std::string& what);

// On a terminal, lines end between words.
std::string fitted(std::FILE* file, const std::string& text);

}  // namespace rapt::cli
