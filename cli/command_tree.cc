#include "command_tree.h"

#include <algorithm>

#include "bench_arguments.h"

namespace rapt::cli {
namespace {

// "[top-left|bottom-right]" and "en|zh" list what may be given; "LEFT,RIGHT" does not.
std::vector<std::string> choices_of(std::string type) {
  std::erase_if(type, [](char c) { return c == '[' || c == ']'; });
  if (type.find('|') == std::string::npos) return {};
  return split(type, '|');
}

OptionInfo option_info(const CLI::Option& option) {
  OptionInfo info;
  for (const std::string& name : option.get_snames()) info.names.push_back("-" + name);
  for (const std::string& name : option.get_lnames()) info.names.push_back("--" + name);
  if (info.names.empty()) info.place = option.get_single_name();
  info.help = option.get_description();
  info.is_flag = option.get_type_size_max() == 0 || option.get_items_expected_max() == 0;
  if (!info.is_flag) info.type = option.get_type_name();
  info.may_lack_value = !info.is_flag && option.get_items_expected_min() == 0;
  info.choices = choices_of(info.type);
  info.is_file = info.type.ends_with("FILE") || info.type == "IN" || info.type == "OUT" || info.type == "PATH";
  return info;
}

CommandInfo info_of(const CLI::App& app, const std::string& path) {
  CommandInfo info{path, app.get_description(), app.get_footer(), {}, {}};
  for (const CLI::Option* option : app.get_options([](const CLI::Option*) { return true; })) {
    info.options.push_back(option_info(*option));
  }
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; })) {
    info.commands.push_back(info_of(*command, (path.empty() ? "" : path + " ") + command->get_name()));
  }
  return info;
}

}  // namespace

CommandInfo command_info(const CLI::App& app) { return info_of(app, ""); }

}  // namespace rapt::cli
