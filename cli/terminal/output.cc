#include "cli/terminal/output.h"

#include <cstdio>
#include <unistd.h>

#include <fmt/format.h>

#include "cli/terminal/terminal.h"
#include "cli/terminal/text.h"

namespace rapt::cli {

void show_progress(const std::string& now) {
  static const bool on_terminal = isatty(STDERR_FILENO) != 0;
  if (on_terminal) fmt::print(stderr, "\r\x1b[K{}", now);
}

void complain(const std::string& what) { fmt::print(stderr, "{}\n", fitted(stderr, fmt::format("rapt: {}", what))); }

std::string fitted(std::FILE* file, const std::string& text) {
  const int width = terminal_width(fileno(file));
  if (width == 0) return text;
  std::string lines;
  for (const std::string& line : wrap(text, width)) lines += fmt::format("{}{}", lines.empty() ? "" : "\n", line);
  return lines;
}

void print(const std::string& text) { std::fwrite(text.data(), 1, text.size(), stdout); }

}  // namespace rapt::cli
