#include "cli/option_list.h"

#include <algorithm>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "cli/command.h"
#include "cli/files/array_files.h"
#include "cli/terminal/output.h"
#include "cli/terminal/terminal.h"
#include "cli/terminal/text.h"
#include "rapt/option_table.h"

namespace rapt::cli {
namespace {

constexpr int kColumn = 24;  // where the descriptions begin

using Found = std::vector<const OptionRow*>;

bool contains(std::string_view text, std::string_view word) { return text.find(word) != std::string_view::npos; }

Found with_word(std::string_view word) {
  Found found;
  for (const OptionRow& option : option_table()) {
    const std::string whole = fmt::format("{}::{}", option.of, option.name);
    if (contains(whole, word) || contains(option.c.name, word) || contains(option.python.name, word) ||
        contains(option.command.name, word)) {
      found.push_back(&option);
    }
  }
  return found;
}

std::string entry(std::string_view name, std::string_view text, int width) {
  std::string lines = fmt::format("  {:<{}} ", name, kColumn - 3);
  const std::vector<std::string> wrapped = wrap(text, width - kColumn);
  for (std::size_t n = 0; n < wrapped.size(); ++n) {
    lines += fmt::format("{:{}}{}\n", "", n == 0 ? 0 : kColumn, wrapped[n]);
  }
  return lines;
}

std::string list_of(const Found& options, int width) {
  std::string text, of;
  for (const OptionRow* option : options) {
    if (option->of != of) text += fmt::format("{}{}\n", of.empty() ? "" : "\n", option->of);
    of = option->of;
    text += entry(option->name, fmt::format("{} (default: {})", option->meaning, option->default_value), width);
  }
  return text + "\nrapt options NAME shows the names of an option in C, in Python and on the command line.\n";
}

std::string in_full(const Found& options, int width) {
  const auto name_or_reason = [](const OptionName& name) {
    return name.name.empty() ? fmt::format("none: {}", name.why_not) : std::string(name.name);
  };
  std::string text;
  for (const OptionRow* option : options) {
    text += fmt::format("{}{}::{}\n", text.empty() ? "" : "\n", option->of, option->name);
    text += entry("means", option->meaning, width);
    text += entry("default", option->default_value, width);
    text += entry("in C", name_or_reason(option->c), width);
    text += entry("in Python", name_or_reason(option->python), width);
    text += entry("in rapt run", name_or_reason(option->command), width);
  }
  return text;
}

std::string data_of(const Found& options) {
  nlohmann::ordered_json json = {{"schema", 1}, {"options", nlohmann::ordered_json::array()}};
  const auto name_or_reason = [](const OptionName& name) {
    return name.name.empty() ? nlohmann::ordered_json{{"why_not", name.why_not}}
                             : nlohmann::ordered_json{{"names", split(std::string(name.name), ' ')}};
  };
  for (const OptionRow* option : options) {
    json["options"].push_back({{"of", option->of},
                               {"name", option->name},
                               {"default", option->default_value},
                               {"meaning", option->meaning},
                               {"c", name_or_reason(option->c)},
                               {"python", name_or_reason(option->python)},
                               {"command", name_or_reason(option->command)}});
  }
  return json.dump() + "\n";
}

}  // namespace

Command add_option_list(Command& rapt, OptionListOptions& options) {
  Command command = rapt.below(
      "options", "List the options of attention, the layer and the cache, with their names in every interface");
  command.place_or_none("name", "NAME", "Show all details of the options whose name contains this, such as window",
                        [&](const std::string& text) { options.word = text; });
  command.flag("--json", options.json, "Print the result as JSON");
  return command;
}

ExitCode run_option_list(const OptionListOptions& options) {
  const Found found = with_word(options.word);
  if (found.empty()) {
    std::vector<std::string> names;
    for (const OptionRow& option : option_table()) names.emplace_back(option.name);
    const auto near = nearest(options.word, names);
    throw UsageError(fmt::format("no option name contains {}; {}", options.word,
                                 near ? fmt::format("did you mean {}?", *near) : "rapt options lists all options"));
  }
  const int width = detect_terminal(ColorChoice::never).width();
  print(options.json ? data_of(found) : options.word.empty() ? list_of(found, width) : in_full(found, width));
  return ExitCode::good;
}

}  // namespace rapt::cli
