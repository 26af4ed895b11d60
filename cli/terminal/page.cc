#include "cli/terminal/page.h"

#include <algorithm>
#include <cstdio>

#include <fmt/format.h>

#include "cli/terminal/text.h"

namespace rapt::cli {

void Page::heading(std::string_view name, std::string_view detail) {
  int used = 2 + 1 + columns(name) + 1 + (detail.empty() ? 0 : 1 + columns(detail) + 3);
  const bool too_narrow = used > width();
  if (too_narrow) used -= columns(detail) + 4;
  std::string rule;
  for (int i = used; i < width(); ++i) rule += "─";
  text_ += fmt::format("\n{} {} {}", terminal_.dim("──"), terminal_.bold(name), terminal_.dim(rule));
  if (!detail.empty() && !too_narrow) text_ += fmt::format(" {} {}", detail, terminal_.dim("──"));
  text_ += '\n';
  if (too_narrow) line(detail);
}

void Page::prose(std::string_view text) { lines(wrap(text, room())); }

void Page::quiet(std::string_view text) {
  for (const std::string& each : wrap(text, room())) line(terminal_.dim(each));
}

void Page::line(std::string_view text) {
  if (!text.empty()) text_.append(kMargin, ' ').append(text);
  text_ += '\n';
}

void Page::lines(const std::vector<std::string>& texts) {
  for (const std::string& each : texts) line(each);
}

void Page::flush() {
  // Removes trailing blanks, which padded cells leave.
  std::string trimmed;
  for (std::size_t begin = 0; begin < text_.size();) {
    const std::size_t end = text_.find('\n', begin);
    std::string_view each(text_.data() + begin, end - begin);
    while (!each.empty() && each.back() == ' ') each.remove_suffix(1);
    trimmed.append(each).push_back('\n');
    begin = end + 1;
  }
  std::fwrite(trimmed.data(), 1, trimmed.size(), stdout);
  text_.clear();
}

}  // namespace rapt::cli
