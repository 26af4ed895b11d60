// The arguments that the benchmarks share: lists of numbers and of words, and what they print while they run.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "terminal.h"

namespace rapt::cli {

inline constexpr std::int64_t kMostThreads = 1024;

std::vector<std::string> split(const std::string& text, char at = ',');

// Throws, naming the option, what is not a whole number in this range.
std::int64_t whole_number(const std::string& option, const std::string& text, std::int64_t least, std::int64_t most);

// One of a list of words, by name; the message lists them.
template <class Value, std::size_t kCount>
Value chosen(const std::string& option, const std::string& text,
             const std::array<std::pair<std::string_view, Value>, kCount>& choices) {
  std::string names;
  for (const auto& [name, value] : choices) {
    if (name == text) return value;
    names += fmt::format("{}{}", names.empty() ? "" : ", ", name);
  }
  throw CLI::ValidationError(option, fmt::format("'{}' is none of {}", text, names));
}

inline constexpr std::array<std::pair<std::string_view, ColorChoice>, 3> kColors{
    {{"auto", ColorChoice::automatic}, {"always", ColorChoice::always}, {"never", ColorChoice::never}}};

class Adder {
 public:
  explicit Adder(CLI::App& command) : command_(command) {}

  // --name 1,2,4 into a list of numbers.
  void numbers(const std::string& name, std::vector<std::int64_t>& list, std::int64_t most, const std::string& help) {
    one(name, "LIST", help, [&list, name, most](const std::string& text) {
      list.clear();
      for (const std::string& part : split(text)) list.push_back(whole_number(name, part, 1, most));
    });
  }
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
  CLI::Option* one(const std::string& name, const std::string& type, const std::string& help,
                   const std::function<void(const std::string&)>& set) {
    return command_.add_option_function<std::string>(name, set, help)->type_name(type);
  }

 private:
  template <class Value, std::size_t kCount>
  static std::string names_of(const std::array<std::pair<std::string_view, Value>, kCount>& all) {
    std::string names;
    for (const auto& each : all) names += fmt::format("{}{}", names.empty() ? "" : "|", each.first);
    return names;
  }

  CLI::App& command_;
};

// "" ends the line. On anything but a terminal there is no line: a log should not hold a hundred of them.
void show_progress(const std::string& now);

void print(const std::string& text);

}  // namespace rapt::cli
