#include "cli/command.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <system_error>

#include <CLI/CLI.hpp>

namespace rapt::cli {
namespace {

// "[top-left|bottom-right]" and "en|zh" list the choices, "raw|masked:FILE" lists those before the colon; "LEFT,RIGHT"
// lists nothing.
std::vector<std::string> choices_of(std::string type) {
  std::erase_if(type, [](char c) { return c == '[' || c == ']'; });
  if (type.find('|') == std::string::npos) return {};
  return split(type.substr(0, type.find(':')), '|');
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
  info.may_repeat = !info.is_flag && option.get_items_expected_max() > 1;
  info.choices = choices_of(info.type);
  info.is_file_after_colon = info.type.ends_with(":FILE");
  info.is_file = info.type.starts_with("FILE") || info.type == "IN" || info.type == "OUT";
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

CLI::Option* add(CLI::App& app, const std::string& name, const std::string& type, const std::string& help,
                 const Command::Set& set) {
  const auto checked = [name, set](const std::string& text) {
    // CLI11 accepts any next argument as the value, even an option.
    if (text.size() > 2 && text.starts_with("--") && text.find(' ') == std::string::npos) {
      throw BadValue(name, fmt::format("requires a value, but {} is an option", text));
    }
    set(text);
  };
  return app.add_option_function<std::string>(name, checked, help)->type_name(type);
}

// The value is a list of strings; the caller tells CLI11 how many to take.
CLI::Option* add_list(CLI::App& app, const std::string& name, const std::string& type, const std::string& help,
                      const Command::SetAll& set) {
  return app.add_option_function<std::vector<std::string>>(name, set, help)->type_name(type);
}

}  // namespace

std::vector<std::string> split(const std::string& text, char at) {
  std::vector<std::string> parts(1);
  for (const char c : text) {
    if (c == at) {
      parts.emplace_back();
    } else {
      parts.back() += c;
    }
  }
  return parts;
}

std::int64_t whole_number(const std::string& option, const std::string& text, std::int64_t least, std::int64_t most) {
  std::int64_t value = 0;
  const char* last = text.data() + text.size();
  const auto [end, error] = std::from_chars(text.data(), last, value);
  if (error != std::errc() || end != last || value < least || value > most) {
    throw BadValue(option, fmt::format("'{}' is not an integer from {} to {}", text, least, most));
  }
  return value;
}

double real_number(const std::string& option, const std::string& text) {
  double value = 0;
  const char* last = text.data() + text.size();
  const auto [end, error] = std::from_chars(text.data(), last, value);
  if (error != std::errc() || end != last || !std::isfinite(value)) {
    throw BadValue(option, fmt::format("'{}' is not a number", text));
  }
  return value;
}

double real_number(const std::string& option, const std::string& text, double least, double most) {
  const double value = real_number(option, text);
  if (value < least || value > most) {
    throw BadValue(option, fmt::format("'{}' is not a number from {} to {}", text, least, most));
  }
  return value;
}

Command Command::below(const std::string& name, const std::string& help) {
  return Command(*app_->add_subcommand(name, help));
}
void Command::require_below() { app_->require_subcommand(1); }
void Command::footer(const std::string& text) { app_->footer(text); }
void Command::when_given(const std::function<void()>& act) { app_->callback(act); }
bool Command::is_given() const { return app_->parsed(); }
CommandInfo Command::info() const { return info_of(*app_, ""); }
CommandInfo Command::given_info() const {
  const CLI::App* given = app_;
  std::string path;
  for (auto below = given->get_subcommands(); !below.empty(); below = given->get_subcommands()) {
    given = below.front();
    path += fmt::format("{}{}", path.empty() ? "" : " ", given->get_name());
  }
  return info_of(*given, path);
}

void Command::flag(const std::string& name, bool& value, const std::string& help) { app_->add_flag(name, value, help); }
void Command::flag(const std::string& name, const std::function<void()>& act, const std::string& help) {
  app_->add_flag_callback(name, act, help);
}
void Command::exclude(const std::string& name, const std::string& other) {
  app_->get_option(name)->excludes(app_->get_option(other));
}

void Command::text(const std::string& name, const std::string& type, std::string& value, const std::string& help) {
  one(name, type, help, [&value](const std::string& text) { value = text; });
}
void Command::one(const std::string& name, const std::string& type, const std::string& help, const Set& set) {
  add(*app_, name, type, help, set);
}
void Command::one_or_none(const std::string& name, const std::string& type, const std::string& help, const Set& set) {
  add_list(*app_, name, type, help, [set](const std::vector<std::string>& texts) {
    set(texts.empty() ? "" : texts[0]);
  })->expected(0, 1);
}
void Command::many(const std::string& name, const std::string& type, const std::string& help, const SetAll& set) {
  add_list(*app_, name, type, help, set)->allow_extra_args(false);
}
void Command::place(const std::string& name, const std::string& type, const std::string& help, const Set& set) {
  add(*app_, name, type, help, set)->required();
}
void Command::place_or_none(const std::string& name, const std::string& type, const std::string& help, const Set& set) {
  add(*app_, name, type, help, set);
}

void Command::whole(const std::string& name, std::int64_t& value, std::int64_t most, const std::string& help) {
  one(name, "N", help, [&value, name, most](const std::string& text) { value = whole_number(name, text, 1, most); });
}
void Command::seconds(const std::string& name, double& value, const std::string& help) {
  one(name, "S", help, [&value, name](const std::string& text) { value = real_number(name, text, 0.0, 3600.0); });
}
void Command::numbers(const std::string& name, std::vector<std::int64_t>& list, std::int64_t most,
                      const std::string& help) {
  one(name, "LIST", help, [&list, name, most](const std::string& text) {
    list.clear();
    for (const std::string& part : split(text)) list.push_back(whole_number(name, part, 1, most));
  });
}

}  // namespace rapt::cli
