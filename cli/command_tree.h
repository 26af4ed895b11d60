// A command and its options, as plain data.
#pragma once

#include <string>
#include <vector>

#include <CLI/CLI.hpp>

namespace rapt::cli {

struct OptionInfo {
  std::vector<std::string> names;    // "--json"; empty: given by its place
  std::string place;                 // its name where it has a place: "file"
  std::string type;                  // "FILE", "N", "en|zh"; "" for a flag
  std::vector<std::string> choices;  // "en", "zh"
  std::string help;
  bool is_flag = false;
  bool is_file = false;
  bool may_lack_value = false;
};

struct CommandInfo {
  std::string path;  // "bench mha"; "" for rapt itself
  std::string help;
  std::string footer;
  std::vector<OptionInfo> options;
  std::vector<CommandInfo> commands;
};

CommandInfo command_info(const CLI::App& app);

}  // namespace rapt::cli
