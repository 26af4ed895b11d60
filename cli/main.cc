// The rapt command. Data goes to stdout, everything else to stderr.
#include <cstdio>
#include <exception>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "array_files.h"
#include "bench.h"
#include "check.h"
#include "completion.h"
#include "convert.h"
#include "exit_code.h"
#include "explain.h"
#include "info.h"
#include "inspect.h"
#include "run_options.h"

namespace rapt::cli {
namespace {

ExitCode complain(ExitCode code, const std::string& message) {
  fmt::print(stderr, "rapt: {}\n", message);
  return code;
}

// Of a word that nobody expects and that is near one that `command` has, an option or a command; "" where none is.
std::string meant(const CLI::App& app, const CLI::App& command) {
  std::vector<std::string> known;
  for (const CLI::Option* option : command.get_options([](const CLI::Option*) { return true; })) {
    for (const std::string& name : option->get_lnames()) known.push_back("--" + name);
  }
  for (const CLI::App* below : command.get_subcommands([](const CLI::App*) { return true; })) {
    known.push_back(below->get_name());
  }
  for (const std::string& word : app.remaining(true)) {
    const auto near = nearest(word.substr(0, word.find('=')), known);
    if (near) return fmt::format("there is no {}; did you mean {}?", word, *near);
  }
  return "";
}

ExitCode run_command(int argc, char** argv) {
  CLI::App app("Multi-head attention: exact, fast and visible", "rapt");
  app.set_version_flag("--version", "rapt " RAPT_VERSION);
  app.require_subcommand(0, 1);
  ExplainOptions explain_options;
  const CLI::App* explain = add_explain(app, explain_options);
  RunOptions run_options;
  const CLI::App* run = add_run(app, run_options);
  InspectOptions inspect_options;
  const CLI::App* inspect = add_inspect(app, inspect_options);
  ConvertOptions convert_options;
  const CLI::App* convert = add_convert(app, convert_options);
  InfoOptions info_options;
  const CLI::App* info = add_info(app, info_options);
  CheckOptions check_options;
  const CLI::App* check = add_check(app, check_options);
  BenchOptions bench_options;
  const CLI::App* bench = add_bench(app, bench_options);
  std::string shell;
  const CLI::App* completion = add_completion(app, shell);
  const CLI::App* man = add_man(app);
  const CLI::App* help = app.add_subcommand("help", "Print this help");
  app.footer("rapt COMMAND --help tells more about a command.");

  // Taken now: once a subcommand is parsed, CLI11 gives that one's help instead.
  const std::string overview = app.help();
  const auto given = [&]() -> const CLI::App* {  // the subcommand that was named, once the line is read
    const auto parsed = app.get_subcommands();
    return parsed.empty() ? nullptr : parsed.front();
  };

  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForVersion& version) {
    fmt::print("{}\n", version.what());
    return ExitCode::good;
  } catch (const CLI::CallForHelp&) {
    fmt::print("{}", given() != nullptr && given() != help ? given()->help("rapt") : overview);
    return ExitCode::good;
  } catch (const CLI::ParseError& error) {
    const std::string more = given() != nullptr ? fmt::format("rapt {} --help", given()->get_name()) : "rapt --help";
    const std::string near = meant(app, given() != nullptr ? *given() : app);
    return complain(ExitCode::wrong_usage,
                    fmt::format("{} ({} lists what there is)", near.empty() ? error.what() : near, more));
  }

  if (explain->parsed()) return run_explain(explain_options);
  if (run->parsed()) return run_run(run_options);
  if (inspect->parsed()) return run_inspect(inspect_options);
  if (convert->parsed()) return run_convert(convert_options);
  if (info->parsed()) return run_info(info_options);
  if (check->parsed()) return run_check_command(check_options);
  if (bench->parsed()) return run_bench(bench_options);
  if (completion->parsed() || man->parsed()) {
    const std::string text = man->parsed()     ? man_page(app)
                             : shell == "bash" ? bash_completion(app)
                                               : zsh_completion(app);
    fmt::print("{}", text);
    return ExitCode::good;
  }
  if (help->parsed()) {
    fmt::print("{}", overview);
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
      code = rapt::cli::complain(ExitCode::failed, "cannot write to stdout");
    }
  } catch (const rapt::cli::UsageError& error) {
    code = rapt::cli::complain(ExitCode::wrong_usage, error.what());
  } catch (const std::exception& error) {
    code = rapt::cli::complain(ExitCode::failed, error.what());
  }
  return static_cast<int>(code);
}
