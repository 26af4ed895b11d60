#include "cli/completion.h"

#include <algorithm>

#include <fmt/format.h>

#include "cli/command.h"

namespace rapt::cli {
namespace {

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

// ---- bash -----------------------------------------------------------------------------------------------------------

// The words that may follow a command: subcommands and choices of positional arguments. If there are none, or after -,
// the script offers options instead.
std::string bash_words(const CommandInfo& command) {
  std::vector<std::string> words;
  for (const CommandInfo& below : command.commands) words.push_back(below.name());
  for (const OptionInfo& option : command.options) {
    if (option.names.empty()) words.insert(words.end(), option.choices.begin(), option.choices.end());
  }
  return joined(words, " ");
}
std::string bash_options(const CommandInfo& command) {
  std::vector<std::string> names;
  for (const OptionInfo& option : command.options) names.insert(names.end(), option.names.begin(), option.names.end());
  return joined(names, " ");
}
bool takes_file(const CommandInfo& command) {
  return std::any_of(command.options.begin(), command.options.end(),
                     [](const OptionInfo& option) { return option.names.empty() && option.is_file; });
}

// The possible values of an option.
std::string bash_value(const CommandInfo& command, const OptionInfo& option) {
  if (option.is_file_after_colon) {
    return fmt::format("_rapt_words '{}:'; compopt -o nospace 2>/dev/null", joined(option.choices, ": "));
  }
  if (option.is_file) return "_rapt_files";
  if (option.choices.empty()) return ":";
  const std::string more = option.may_lack_value ? fmt::format(" {}", bash_options(command)) : "";
  return fmt::format("_rapt_words '{}{}'", joined(option.choices, " "), more);
}
std::string bash_values(const CommandInfo& command) {
  std::string cases;
  for (const OptionInfo& option : command.options) {
    if (option.is_flag || option.names.empty()) continue;
    cases +=
        fmt::format("        '{}:{}') {}; return ;;\n", command.path,
                    joined(option.names, fmt::format("'|'{}:", command.path).c_str()), bash_value(command, option));
  }
  return cases;
}

// ---- zsh ------------------------------------------------------------------------------------------------------------

// Brackets, colons and quotes have a special meaning in zsh descriptions.
std::string zsh_safe(const std::string& text) {
  std::string safe;
  for (const char c : text) {
    if (c == '[' || c == ']' || c == ':' || c == '\\') safe += '\\';
    safe += c == '\n' ? ' ' : c;
  }
  return replaced(safe, "'", "'\\''");
}

std::string zsh_action(const OptionInfo& option) {
  if (option.is_file_after_colon) return fmt::format(" _rapt_word_and_file {}", joined(option.choices, " "));
  if (!option.choices.empty()) return fmt::format("({})", joined(option.choices, " "));
  return option.is_file ? "_files" : " ";
}

std::string zsh_option(const OptionInfo& option) {
  std::string value;
  if (!option.is_flag) {
    value = fmt::format("{}{}:{}", option.may_lack_value ? "::" : ":",
                        zsh_safe(option.names.empty() ? option.place : option.type), zsh_action(option));
  }
  if (option.names.empty()) return fmt::format("    '{}' \\\n", value);
  std::string lines;
  for (const std::string& name : option.names) {  // = after the name: --input x and --input=x
    lines += fmt::format("    '{}{}{}[{}]{}' \\\n", option.may_repeat ? "*" : "", name, option.is_flag ? "" : "=",
                         zsh_safe(option.help), value);
  }
  return lines;
}

std::string zsh_function(const std::string& path) {
  return path.empty() ? "_rapt" : fmt::format("_rapt_{}", replaced(path, " ", "_"));
}

// ---- The manual -----------------------------------------------------------------------------------------------------

// A dot or a quote at the start of a line, and backslashes, have a special meaning in roff; hyphens of options are
// minus signs.
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

Command add_completion(Command& rapt, std::string& shell) {
  Command command = rapt.below("completion", "Print a shell completion script");
  command.place("shell", "bash|zsh", "The shell", [&shell](const std::string& text) {
    if (text != "bash" && text != "zsh") throw BadValue("shell", fmt::format("'{}' is not one of bash, zsh", text));
    shell = text;
  });
  command.footer("bash: source <(rapt completion bash)\nzsh:  rapt completion zsh > DIR/_rapt, with DIR in $fpath");
  return command;
}

Command add_man(Command& rapt) { return rapt.below("man", "Print the manual page: rapt man | man -l -"); }

std::string bash_completion(const CommandInfo& root) {
  std::string paths, words, values;
  for_each_command(root, [&](const CommandInfo& command) {
    for (const CommandInfo& below : command.commands) {
      paths += fmt::format("            '{}:{}') path='{}' ;;\n", command.path, below.name(), below.path);
    }
    words += fmt::format("        '{}') words='{}' files='{}'\n            options='{}' ;;\n", command.path,
                         bash_words(command), takes_file(command) ? "yes" : "", bash_options(command));
    values += bash_values(command);
  });
  return fmt::format(R"(# Completion of rapt for bash, written by `rapt completion bash`.
_rapt_words() {{ COMPREPLY=($(compgen -W "$1" -- "$cur")); }}
_rapt_files() {{
    local IFS=$'\n'
    COMPREPLY=($(compgen -f -- "$cur"))
    compopt -o filenames 2>/dev/null
}}
_rapt() {{
    local cur="${{COMP_WORDS[COMP_CWORD]}}" prev="${{COMP_WORDS[COMP_CWORD-1]}}" path='' words='' files='' options='' word
    COMPREPLY=()
    # bash cuts words at = and at colons.
    if [[ "$cur" == '=' ]]; then
        cur=''
    elif [[ "$prev" == '=' ]]; then
        prev="${{COMP_WORDS[COMP_CWORD-2]}}"
    elif [[ "$cur" == ':' || "$prev" == ':' ]]; then
        [[ "$cur" == ':' ]] && word="$prev" cur='' || word="${{COMP_WORDS[COMP_CWORD-2]}}"
        [[ "$word" == *.npz || "$word" == *.safetensors ]] || _rapt_files
        return
    fi
    for word in "${{COMP_WORDS[@]:1:COMP_CWORD-1}}"; do
        case "$path:$word" in
{}        esac
    done
    case "$path:$prev" in
{}    esac
    case "$path" in
{}    esac
    if [[ "$cur" == -* || -z "$words$files" ]]; then
        _rapt_words "$options"
    elif [[ -n "$files" ]]; then
        _rapt_files
    else
        _rapt_words "$words"
    fi
}}
complete -F _rapt rapt
)",
                     paths, values, words);
}

std::string zsh_completion(const CommandInfo& root) {
  std::string text = R"(#compdef rapt
# Completion of rapt for zsh, written by `rapt completion zsh`.

# raw:scores.npy: one of these words, a colon, a file.
_rapt_word_and_file() {
  if compset -P '*:'; then _files; else compadd -q -S : -- "$@"; fi
}

)";
  for_each_command(root, [&](const CommandInfo& command) {
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
      text += fmt::format("        '{}:{}'\n", below.name(), zsh_safe(below.help));
    }
    text += "      )\n      _describe command commands ;;\n    arguments)\n      case $line[1] in\n";
    for (const CommandInfo& below : command.commands) {
      text += fmt::format("        {}) {} ;;\n", below.name(), zsh_function(below.path));
    }
    text += "      esac ;;\n  esac\n}\n\n";
  });
  return text + "if [ \"$funcstack[1]\" = \"_rapt\" ]; then _rapt \"$@\"; else compdef _rapt rapt; fi\n";
}

std::string man_page(const CommandInfo& root) {
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
      ".TP\n0\nSuccess.\n.TP\n1\nAn error, such as a bad file, shape or type.\n"
      ".TP\n2\nInvalid command line.\n.TP\n3\nResults differ from the expected ones, or training missed its goals.\n"
      ".TP\n130\nInterrupted by Ctrl-C; rapt train saves its progress first.\n"
      ".SH ENVIRONMENT\n"
      ".TP\n\\fBNO_COLOR\\fR\nIf set, disables colour.\n.TP\n\\fBRAPT_NUM_THREADS\\fR\nNumber of threads to use.\n"
      ".TP\n\\fBRAPT_ISA\\fR\nInstruction set to use; rapt info lists them.\n";
  return text;
}

}  // namespace rapt::cli
