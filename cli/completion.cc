#include "completion.h"

#include <algorithm>

#include <fmt/format.h>

#include "command_tree.h"

namespace rapt::cli {
namespace {

std::string last_word(const std::string& path) { return path.substr(path.rfind(' ') + 1); }

std::string joined(const std::vector<std::string>& words, const char* between) {
  std::string all;
  for (const std::string& word : words) all += (all.empty() ? "" : between) + word;
  return all;
}

std::string replaced(std::string text, const std::string& what, const std::string& by) {
  for (std::size_t at = 0; (at = text.find(what, at)) != std::string::npos; at += by.size()) {
    text.replace(at, what.size(), by);
  }
  return text;
}

template <class Visit>
void for_each_command(const CommandInfo& command, const Visit& visit) {
  visit(command);
  for (const CommandInfo& below : command.commands) for_each_command(below, visit);
}

// The words that may stand after a command, in bash's way.
std::string bash_words(const CommandInfo& command) {
  std::vector<std::string> words;
  for (const CommandInfo& below : command.commands) words.push_back(last_word(below.path));
  for (const OptionInfo& option : command.options) words.insert(words.end(), option.names.begin(), option.names.end());
  for (const OptionInfo& option : command.options) {
    if (option.names.empty()) words.insert(words.end(), option.choices.begin(), option.choices.end());
  }
  return joined(words, " ");
}

// What may stand after an option that takes a value.
std::string bash_values(const CommandInfo& command) {
  std::string cases;
  for (const OptionInfo& option : command.options) {
    if (option.is_flag || option.names.empty()) continue;
    std::string reply = "return";
    if (!option.choices.empty()) {
      const std::string more = option.may_lack_value ? " " + bash_words(command) : "";
      reply = fmt::format("COMPREPLY=($(compgen -W '{}{}' -- \"$cur\")); return", joined(option.choices, " "), more);
    } else if (option.is_file) {
      reply = "COMPREPLY=($(compgen -f -- \"$cur\")); compopt -o filenames 2>/dev/null; return";
    }
    cases += fmt::format("        '{}:{}') {} ;;\n", command.path,
                         joined(option.names, fmt::format("'|'{}:", command.path).c_str()), reply);
  }
  return cases;
}

// zsh reads brackets, colons and quotes in a description as its own.
std::string zsh_safe(const std::string& text) {
  std::string safe;
  for (const char c : text) {
    if (c == '[' || c == ']' || c == ':' || c == '\\') safe += '\\';
    safe += c == '\n' ? ' ' : c;
  }
  return replaced(safe, "'", "'\\''");
}

std::string zsh_option(const OptionInfo& option) {
  std::string value;
  if (!option.is_flag) {
    const std::string action = !option.choices.empty() ? fmt::format("({})", joined(option.choices, " "))
                               : option.is_file        ? "_files"
                                                       : " ";
    value = fmt::format("{}{}:{}", option.may_lack_value ? "::" : ":",
                        zsh_safe(option.names.empty() ? option.place : option.type), action);
  }
  if (option.names.empty()) return fmt::format("    '{}' \\\n", value);
  std::string lines;
  for (const std::string& name : option.names) {
    lines += fmt::format("    '{}[{}]{}' \\\n", name, zsh_safe(option.help), value);
  }
  return lines;
}

std::string zsh_function(const std::string& path) {
  return "_rapt" + (path.empty() ? "" : "_" + replaced(path, " ", "_"));
}

// roff reads a dot or a quote at the start of a line, and backslashes, as its own; an option's hyphens are minus signs.
std::string roff(const std::string& text) {
  std::string safe = replaced(replaced(text, "\\", "\\e"), "-", "\\-");
  if (safe.starts_with('.') || safe.starts_with('\'')) safe = "\\&" + safe;
  return replaced(replaced(safe, "\n.", "\n\\&."), "\n'", "\n\\&'");
}

std::string roff_option(const OptionInfo& option) {
  std::string head = option.names.empty() ? fmt::format("\\fI{}\\fR", roff(option.place)) : "";
  for (const std::string& name : option.names)
    head += fmt::format("{}\\fB{}\\fR", head.empty() ? "" : ", ", roff(name));
  if (!option.type.empty() && !option.names.empty()) head += fmt::format(" \\fI{}\\fR", roff(option.type));
  return fmt::format(".TP\n{}\n{}\n", head, roff(option.help));
}

}  // namespace

CLI::App* add_completion(CLI::App& app, std::string& shell) {
  CLI::App* command = app.add_subcommand("completion", "Print the completion of these commands for a shell");
  command->add_option("shell", shell, "Which shell")
      ->required()
      ->check(CLI::IsMember({"bash", "zsh"}).description(""))
      ->type_name("bash|zsh");
  command->footer("bash: source <(rapt completion bash)\nzsh:  rapt completion zsh > a folder of $fpath, as _rapt");
  return command;
}

CLI::App* add_man(CLI::App& app) { return app.add_subcommand("man", "Print the manual page: rapt man | man -l -"); }

std::string bash_completion(const CLI::App& app) {
  const CommandInfo root = command_info(app);
  std::string paths, words, values;
  for_each_command(root, [&](const CommandInfo& command) {
    for (const CommandInfo& below : command.commands) {
      paths += fmt::format("            '{}:{}') path='{}' ;;\n", command.path, last_word(below.path), below.path);
    }
    words += fmt::format("        '{}') words='{}' ;;\n", command.path, bash_words(command));
    values += bash_values(command);
  });
  return fmt::format(R"(# Completion of rapt for bash, written by `rapt completion bash`.
_rapt() {{
    local cur="${{COMP_WORDS[COMP_CWORD]}}" prev="${{COMP_WORDS[COMP_CWORD-1]}}" path='' words='' word
    COMPREPLY=()
    for word in "${{COMP_WORDS[@]:1:COMP_CWORD-1}}"; do
        case "$path:$word" in
{}        esac
    done
    case "$path:$prev" in
{}    esac
    case "$path" in
{}    esac
    COMPREPLY=($(compgen -W "$words" -- "$cur"))
    if [[ "$cur" != -* && -n "$path" && ${{#COMPREPLY[@]}} -eq 0 ]]; then
        COMPREPLY=($(compgen -f -- "$cur"))
        compopt -o filenames 2>/dev/null
    fi
}}
complete -F _rapt rapt
)",
                     paths, values, words);
}

std::string zsh_completion(const CLI::App& app) {
  std::string text = "#compdef rapt\n# Completion of rapt for zsh, written by `rapt completion zsh`.\n\n";
  for_each_command(command_info(app), [&](const CommandInfo& command) {
    text += fmt::format("{}() {{\n", zsh_function(command.path));
    if (!command.commands.empty()) text += "  local line state\n";
    text += command.commands.empty() ? "  _arguments -s \\\n" : "  _arguments -C \\\n";
    for (const OptionInfo& option : command.options) text += zsh_option(option);
    if (command.commands.empty()) {
      text += "    && return\n}\n\n";
      return;
    }
    text += "    '1: :->command' '*::arg:->arguments'\n  case $state in\n    command)\n      local -a commands=(\n";
    for (const CommandInfo& below : command.commands) {
      text += fmt::format("        '{}:{}'\n", last_word(below.path), zsh_safe(below.help));
    }
    text += "      )\n      _describe command commands ;;\n    arguments)\n      case $line[1] in\n";
    for (const CommandInfo& below : command.commands) {
      text += fmt::format("        {}) {} ;;\n", last_word(below.path), zsh_function(below.path));
    }
    text += "      esac ;;\n  esac\n}\n\n";
  });
  return text + "if [ \"$funcstack[1]\" = \"_rapt\" ]; then _rapt \"$@\"; else compdef _rapt rapt; fi\n";
}

std::string man_page(const CLI::App& app) {
  const CommandInfo root = command_info(app);
  std::string text = fmt::format(
      ".TH RAPT 1 \"\" \"rapt {0}\" \"rapt\"\n.SH NAME\nrapt \\- {1}\n.SH SYNOPSIS\n.B rapt\n\\fICOMMAND\\fR "
      "[\\fIOPTIONS\\fR]\n.SH DESCRIPTION\n{1}.\n{2}\n.SH OPTIONS\n",
      RAPT_VERSION, roff(root.help), roff(root.footer));
  for (const OptionInfo& option : root.options) text += roff_option(option);
  text += ".SH COMMANDS\n";
  for_each_command(root, [&](const CommandInfo& command) {
    if (command.path.empty()) return;
    text += fmt::format(".SS rapt {}\n{}.\n", roff(command.path), roff(command.help));
    for (const OptionInfo& option : command.options) text += roff_option(option);
    if (!command.footer.empty()) text += fmt::format(".PP\n.nf\n{}\n.fi\n", roff(command.footer));
  });
  text +=
      ".SH EXIT STATUS\n"
      ".TP\n0\nAll is well.\n.TP\n1\nSomething failed: a file, a shape, a type.\n"
      ".TP\n2\nThe command line asks for what cannot be done.\n.TP\n3\nNumbers differ from what they should be.\n"
      ".SH ENVIRONMENT\n"
      ".TP\n\\fBNO_COLOR\\fR\nNo colours.\n.TP\n\\fBRAPT_NUM_THREADS\\fR\nHow many threads to use.\n"
      ".TP\n\\fBRAPT_ISA\\fR\nWhich instruction set to use; rapt info lists them.\n";
  return text;
}

}  // namespace rapt::cli
