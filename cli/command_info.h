// A command and its options, as plain data.
#pragma once

#include <string>
#include <vector>

namespace rapt::cli {

struct OptionInfo {
  std::vector<std::string> names;    // "--json"; empty: positional
  std::string place;                 // the name of a positional argument: "file"
  std::string type;                  // "FILE", "N", "en|zh"; "" for a flag
  std::vector<std::string> choices;  // "en", "zh"
  std::string help;
  bool is_flag = false;
  bool is_file = false;
  bool is_file_after_colon = false;  // raw|masked:FILE: a choice, a colon and a file
  bool may_lack_value = false;
  bool may_repeat = false;
};

struct CommandInfo {
  std::string path;  // "bench mha"; "" for rapt itself
  std::string help;
  std::string footer;
  std::vector<OptionInfo> options;
  std::vector<CommandInfo> commands;

  std::string name() const { return path.substr(path.rfind(' ') + 1); }  // "mha"
};

}  // namespace rapt::cli
