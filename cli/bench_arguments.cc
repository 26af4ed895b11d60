#include "bench_arguments.h"

#include <charconv>
#include <cstdio>
#include <system_error>
#include <unistd.h>

namespace rapt::cli {

std::vector<std::string> split(const std::string& text, char at) {
  std::vector<std::string> parts(1);
  for (const char c : text) {
    if (c == at) {
      parts.emplace_back();
    } else {
      parts.back() += c;
    }
  }
  return parts;
}

std::int64_t whole_number(const std::string& option, const std::string& text, std::int64_t least, std::int64_t most) {
  std::int64_t value = 0;
  const char* last = text.data() + text.size();
  const auto [end, error] = std::from_chars(text.data(), last, value);
  if (error != std::errc() || end != last || value < least || value > most) {
    throw CLI::ValidationError(option, fmt::format("'{}' is not a whole number from {} to {}", text, least, most));
  }
  return value;
}

void show_progress(const std::string& now) {
  static const bool on_terminal = isatty(STDERR_FILENO) != 0;
  if (on_terminal) fmt::print(stderr, "\r\x1b[K{}", now);
}

void print(const std::string& text) { std::fwrite(text.data(), 1, text.size(), stdout); }

}  // namespace rapt::cli
