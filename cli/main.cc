// The rapt command. Data goes to stdout, everything else to stderr.
#include <cstdio>
#include <exception>
#include <optional>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "cli/bench/bench.h"
#include "cli/check/check.h"
#include "cli/command.h"
#include "cli/completion.h"
#include "cli/exit_code.h"
#include "cli/explain/explain.h"
#include "cli/files/array_files.h"
#include "cli/files/convert.h"
#include "cli/files/inspect.h"
#include "cli/help.h"
#include "cli/info.h"
#include "cli/option_list.h"
#include "cli/run/options.h"
#include "cli/show/show.h"
#include "cli/terminal/output.h"
#include "cli/terminal/terminal.h"
#include "cli/train/generate.h"
#include "cli/train/train.h"
#include "cli/view/view.h"

namespace rapt::cli {
namespace {

// CLI11's message, reworded for the command that was given.
std::string refusal(const CLI::App& app, const CommandInfo& command, const CLI::ParseError& error) {
  std::vector<std::string> known;
  for (const OptionInfo& option : command.options) known.insert(known.end(), option.names.begin(), option.names.end());
  for (const CommandInfo& below : command.commands) known.push_back(below.name());
  for (const std::string& word : app.remaining(true)) {
    const char* kind = word.starts_with('-')      ? "unknown option"
                       : command.commands.empty() ? "unexpected argument"
                                                  : "unknown command";
    const std::optional<std::string> near = nearest(word.substr(0, word.find('=')), known);
    return fmt::format("{} {}{}", kind, word, near ? fmt::format("; did you mean {}?", *near) : "");
  }
  std::string what = error.what();
  if (dynamic_cast<const CLI::ArgumentMismatch*>(&error) != nullptr) {
    for (const OptionInfo& option : command.options) {
      if (option.names.empty() || !what.starts_with(option.names.back() + ":")) continue;
      return fmt::format("{0} requires a value: {0} {1}", option.names.back(), option.type);
    }
  }
  const bool something_is_missing = dynamic_cast<const CLI::RequiredError*>(&error) != nullptr;
  if (something_is_missing && !command.commands.empty()) {
    std::string names;
    for (const CommandInfo& below : command.commands) {
      names += fmt::format("{}{}", names.empty() ? "" : ", ", below.name());
    }
    return fmt::format("rapt {} requires a command: {}", command.path, names);
  }
  if (something_is_missing) {
    std::string call = fmt::format("rapt {}", command.path);
    for (const OptionInfo& option : command.options) {
      if (option.names.empty()) call += fmt::format(" {}", option.type);
    }
    return fmt::format("{}; usage: {}", what, call);
  }
  return what;
}

ExitCode run_command(int argc, char** argv) {
  CLI::App app("Fast, exact multi-head attention, with every step visible", "rapt");
  app.set_help_flag("-h,--help", "Print this help");
  app.set_version_flag("--version", "rapt " RAPT_VERSION, "Print the version");
  app.require_subcommand(0, 1);
  Command rapt(app);
  ExplainOptions explain_options;
  const Command explain = add_explain(rapt, explain_options);
  ShowOptions show_options;
  const Command show = add_show(rapt, show_options);
  RunOptions run_options;
  const Command run = add_run(rapt, run_options);
  TrainOptions train_options;
  const Command train = add_train(rapt, train_options);
  GenerateOptions generate_options;
  const Command generate = add_generate(rapt, generate_options);
  ViewOptions view_options;
  const Command view = add_view(rapt, view_options);
  InspectOptions inspect_options;
  const Command inspect = add_inspect(rapt, inspect_options);
  ConvertOptions convert_options;
  const Command convert = add_convert(rapt, convert_options);
  OptionListOptions options_options;
  const Command options = add_option_list(rapt, options_options);
  InfoOptions info_options;
  const Command info = add_info(rapt, info_options);
  CheckOptions check_options;
  const Command check = add_check(rapt, check_options);
  BenchOptions bench_options;
  const Command bench = add_bench(rapt, bench_options);
  std::string shell;
  const Command completion = add_completion(rapt, shell);
  const Command man = add_man(rapt);
  const Command help = rapt.below("help", "Print this help");
  app.footer("Run rapt COMMAND --help for the options of a command. New here? Try rapt generate, then rapt explain.");

  const auto help_of = [](const CommandInfo& command) {
    return help_text(command, detect_terminal(ColorChoice::never).width());
  };
  const auto refused = [&](const std::string& what) {
    const std::string path = rapt.given_info().path;
    complain(fmt::format("{} (see rapt {}{}--help)", what, path, path.empty() ? "" : " "));
    return ExitCode::wrong_usage;
  };

  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForVersion& version) {
    fmt::print("{}\n", version.what());
    return ExitCode::good;
  } catch (const CLI::CallForHelp&) {
    print(help_of(help.is_given() ? rapt.info() : rapt.given_info()));
    return ExitCode::good;
  } catch (const CLI::ParseError& error) {
    return refused(refusal(app, rapt.given_info(), error));
  } catch (const BadValue& error) {
    return refused(error.what());
  }

  if (explain.is_given()) return run_explain(explain_options);
  if (show.is_given()) return run_show(show_options);
  const bool alone = argc == 2;
  if (run.is_given()) return alone ? run_generate({}) : run_run(run_options);
  if (train.is_given()) return run_train(train_options);
  if (generate.is_given()) return run_generate(generate_options);
  if (view.is_given()) return run_view(view_options);
  if (inspect.is_given()) return run_inspect(inspect_options);
  if (convert.is_given()) return run_convert(convert_options);
  if (options.is_given()) return run_option_list(options_options);
  if (info.is_given()) return run_info(info_options);
  if (check.is_given()) return run_check_command(check_options);
  if (bench.is_given()) return run_bench(bench_options);
  if (completion.is_given() || man.is_given()) {
    const std::string text = man.is_given()    ? man_page(rapt.info())
                             : shell == "bash" ? bash_completion(rapt.info())
                                               : zsh_completion(rapt.info());
    fmt::print("{}", text);
    return ExitCode::good;
  }
  const std::string overview = help_of(rapt.info());
  if (help.is_given()) {
    print(overview);
    return ExitCode::good;
  }
  fmt::print(stderr, "{}", overview);
  return ExitCode::wrong_usage;
}

}  // namespace
}  // namespace rapt::cli

int main(int argc, char** argv) {
  using rapt::cli::ExitCode;
  ExitCode code = ExitCode::failed;
  try {
    code = rapt::cli::run_command(argc, argv);
    if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0) {
      rapt::cli::complain("cannot write to stdout");
      code = ExitCode::failed;
    }
  } catch (const rapt::cli::UsageError& error) {
    rapt::cli::complain(error.what());
    code = ExitCode::wrong_usage;
  } catch (const std::exception& error) {
    rapt::cli::complain(error.what());
    code = ExitCode::failed;
  }
  return static_cast<int>(code);
}
