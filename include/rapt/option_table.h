// Every option in one table: its names in C++, C, Python and the command, its default and its meaning.
//
//   for (const rapt::OptionRow& option : rapt::option_table()) …
//
// `rapt options` prints the table, and docs/guide/options.md is generated from it. tests/nn/options_test.cc and
// tests/project/options_test.py check the C++ and C structs, the Python package, the command's flags and that page
// against the table: they fail if an option was added in one place and forgotten in another.
#pragma once

#include <span>
#include <string_view>

#pragma GCC visibility push(default)
namespace rapt {

// The name of an option in one interface, or the reason why it has none there.
struct OptionName {
  constexpr OptionName() = default;
  // NOLINTNEXTLINE(google-explicit-constructor): a row of the table is a list of strings
  constexpr OptionName(const char* given) : name(given) {}

  std::string_view name{};     // "window_left window_right" if one option has several names there
  std::string_view why_not{};  // empty if there is a name
};

struct OptionRow {
  std::string_view of;             // the struct: "AttentionOptions"
  std::string_view name;           // the field of the struct
  std::string_view default_value;  // as in C++, or in words: "1/sqrt(D)"
  std::string_view meaning;        // in one line
  OptionName c;                    // a field of a struct in rapt/rapt.h
  OptionName python;               // a keyword of the function or class that replaces this struct
  OptionName command;              // a flag of `rapt run`
};

// All options, grouped by struct, in the order of the fields. The strings have static lifetime.
std::span<const OptionRow> option_table();

}  // namespace rapt
#pragma GCC visibility pop
