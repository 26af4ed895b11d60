#include "cli/help.h"

#include <algorithm>
#include <cstddef>
#include <vector>

#include <fmt/format.h>

#include "cli/terminal/text.h"

namespace rapt::cli {
namespace {

constexpr int kColumn = 30;  // where the descriptions begin

// "  --heads N      Query heads"; a long name gets its own line.
std::string entry(const std::string& name, const std::string& help, int width) {
  std::string lines = pad_right(fmt::format("  {}", name), kColumn);
  const std::vector<std::string> wrapped = wrap(help, width - kColumn);
  const bool own_line = columns(lines) > kColumn - 1 && lines.back() != ' ';
  for (std::size_t n = 0; n < wrapped.size(); ++n) {
    if (n > 0 || own_line) lines += fmt::format("\n{:{}}", "", kColumn);
    lines += wrapped[n];
  }
  return lines + "\n";
}

std::string name_of(const OptionInfo& option) {
  std::string names;
  for (const std::string& name : option.names) names += fmt::format("{}{}", names.empty() ? "" : ", ", name);
  if (names.empty()) return option.type;
  return option.type.empty() ? names : fmt::format("{} {}", names, option.type);
}

std::string usage(const CommandInfo& command) {
  std::string line = fmt::format("Usage: rapt{}{}", command.path.empty() ? "" : " ", command.path);
  if (!command.commands.empty()) line += " COMMAND";
  for (const OptionInfo& option : command.options) {
    if (option.names.empty()) line += fmt::format(" {}", option.type);
  }
  return line + " [OPTIONS]\n";
}

}  // namespace

std::string help_text(const CommandInfo& command, int width) {
  std::string text;
  for (const std::string& line : wrap(command.help, width)) text += fmt::format("{}\n", line);
  text += fmt::format("\n{}", usage(command));
  if (!command.commands.empty()) text += "\nCommands:\n";
  for (const CommandInfo& below : command.commands) {
    text += entry(below.name(), below.help, width);
  }
  text += "\nOptions:\n";
  for (const bool by_place : {true, false}) {
    for (const OptionInfo& option : command.options) {
      if (option.names.empty() == by_place) text += entry(name_of(option), option.help, width);
    }
  }
  if (command.footer.empty()) return text;
  text += '\n';
  for (std::size_t at = 0; at <= command.footer.size();) {
    const std::size_t end = std::min(command.footer.find('\n', at), command.footer.size());
    const std::string line = command.footer.substr(at, end - at);
    // Example commands are not wrapped.
    const std::vector<std::string> wrapped = line.starts_with(' ') ? std::vector{line} : wrap(line, width);
    for (const std::string& each : wrapped) text += fmt::format("{}\n", each);
    at = end + 1;
  }
  return text;
}

}  // namespace rapt::cli
