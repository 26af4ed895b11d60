// Every option in one table: what it is called in C++, C, Python and the command, what it is unless given, and what it
// means.
//
//   for (const rapt::OptionRow& option : rapt::option_table()) …
//
// `rapt options` prints it and docs/guide/options.md shows it. tests/options_test.cc and tests/options_test.py hold the
// structs, both headers, the Python package, the command's flags and that page to it: an option that was added in one
// place and forgotten in another fails there.
#pragma once

#include <span>
#include <string_view>

#pragma GCC visibility push(default)
namespace rapt {

// What an option is called in one of the ways to call rapt; or, where it has no name there, why not.
struct OptionName {
  constexpr OptionName() = default;
  // NOLINTNEXTLINE(google-explicit-constructor): so that a row of the table reads as one
  constexpr OptionName(const char* given) : name(given) {}

  std::string_view name{};     // "window_left window_right" where one option is several there
  std::string_view why_not{};  // empty where there is a name
};

struct OptionRow {
  std::string_view of;             // the struct: "AttentionOptions"
  std::string_view name;           // its field
  std::string_view default_value;  // as C++ writes it, or in words: "1/sqrt(D)"
  std::string_view meaning;        // in one line
  OptionName c;                    // a field of a struct in rapt/rapt.h
  OptionName python;               // a keyword of the function or class that takes this struct's place
  OptionName command;              // a flag of `rapt run`
};

// By struct, and in the order of its fields. The strings live as long as the program does.
std::span<const OptionRow> option_table();

}  // namespace rapt
#pragma GCC visibility pop
