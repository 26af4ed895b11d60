// A command of `rapt` with its options, as seen by the files of the commands. Only command.cc and main.cc include
// CLI11, which takes ten seconds to compile.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <limits>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "cli/command_info.h"
#include "cli/terminal/terminal.h"

namespace CLI {
class App;
}

namespace rapt::cli {

inline constexpr std::int64_t kMostThreads = 1024;
inline constexpr std::int64_t kMostWhole = std::numeric_limits<std::int32_t>::max();  // of lengths, heads, positions

// An invalid value of an option: printed as "rapt: --option: …", exit code 2.
class BadValue : public std::runtime_error {
 public:
  BadValue(const std::string& option, const std::string& what) : std::runtime_error(option + ": " + what) {}
};

std::vector<std::string> split(const std::string& text, char at = ',');

// Throws BadValue if the text is not a number in this range.
std::int64_t whole_number(const std::string& option, const std::string& text, std::int64_t least, std::int64_t most);
double real_number(const std::string& option, const std::string& text);
double real_number(const std::string& option, const std::string& text, double least, double most);

// One of a list of words, by name; the message lists them.
template <class Value, std::size_t kCount>
Value chosen(const std::string& option, const std::string& text,
             const std::array<std::pair<std::string_view, Value>, kCount>& choices) {
  std::string names;
  for (const auto& [name, value] : choices) {
    if (name == text) return value;
    names += fmt::format("{}{}", names.empty() ? "" : ", ", name);
  }
  throw BadValue(option, fmt::format("'{}' is not one of {}", text, names));
}

inline constexpr std::array<std::pair<std::string_view, ColorChoice>, 3> kColors{
    {{"auto", ColorChoice::automatic}, {"always", ColorChoice::always}, {"never", ColorChoice::never}}};

// Options are read in the order in which they are added. `type` is the name of the value in the help: FILE, N,
// keep|drop.
class Command {
 public:
  using Set = std::function<void(const std::string&)>;  // throws BadValue
  using SetAll = std::function<void(const std::vector<std::string>&)>;

  explicit Command(CLI::App& app) : app_(&app) {}

  Command below(const std::string& name, const std::string& help);  // adds a subcommand
  void require_below();                                             // one of the subcommands must be given
  void footer(const std::string& text);
  void when_given(const std::function<void()>& act);
  bool is_given() const;  // after parsing
  CommandInfo info() const;
  CommandInfo given_info() const;  // of the innermost command that was given, after parsing

  void flag(const std::string& name, bool& value, const std::string& help);
  void flag(const std::string& name, const std::function<void()>& act, const std::string& help);
  void exclude(const std::string& name, const std::string& other);  // the two cannot be combined
  void text(const std::string& name, const std::string& type, std::string& value, const std::string& help);
  void one(const std::string& name, const std::string& type, const std::string& help, const Set& set);
  void one_or_none(const std::string& name, const std::string& type, const std::string& help, const Set& set);
  // Can be repeated; `set` gets all values.
  void many(const std::string& name, const std::string& type, const std::string& help, const SetAll& set);
  void place(const std::string& name, const std::string& type, const std::string& help, const Set& set);
  void place_or_none(const std::string& name, const std::string& type, const std::string& help, const Set& set);

  void whole(const std::string& name, std::int64_t& value, std::int64_t most, const std::string& help);
  void seconds(const std::string& name, double& value, const std::string& help);
  // --name 1,2,4 into a list of numbers.
  void numbers(const std::string& name, std::vector<std::int64_t>& list, std::int64_t most, const std::string& help);
  // --name a,b into a list of choices.
  template <class Value, std::size_t kCount>
  void choices(const std::string& name, std::vector<Value>& list,
               const std::array<std::pair<std::string_view, Value>, kCount>& all, const std::string& help) {
    one(name, names_of(all), help, [&list, name, &all](const std::string& text) {
      list.clear();
      for (const std::string& part : split(text)) list.push_back(chosen(name, part, all));
    });
  }
  template <class Value, std::size_t kCount>
  void choice(const std::string& name, Value& value, const std::array<std::pair<std::string_view, Value>, kCount>& all,
              const std::string& help) {
    one(name, names_of(all), help, [&value, name, &all](const std::string& text) { value = chosen(name, text, all); });
  }

 private:
  template <class Value, std::size_t kCount>
  static std::string names_of(const std::array<std::pair<std::string_view, Value>, kCount>& all) {
    std::string names;
    for (const auto& each : all) names += fmt::format("{}{}", names.empty() ? "" : "|", each.first);
    return names;
  }

  CLI::App* app_;
};

}  // namespace rapt::cli
