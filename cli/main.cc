// The rapt command. Data goes to stdout, everything else to stderr.
#include <cstdio>
#include <exception>
#include <string>
#include <string_view>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "exit_code.h"
#include "explain.h"

namespace rapt::cli {
namespace {

ExitCode complain(ExitCode code, const std::string& message) {
  fmt::print(stderr, "rapt: {}\n", message);
  return code;
}

ExitCode run(int argc, char** argv) {
  CLI::App app("Multi-head attention: exact, fast and visible", "rapt");
  app.set_version_flag("--version", "rapt " RAPT_VERSION);
  app.require_subcommand(0, 1);
  ExplainOptions explain_options;
  const CLI::App* explain = add_explain(app, explain_options);
  const CLI::App* help = app.add_subcommand("help", "Print this help");
  app.footer("rapt COMMAND --help tells more about a command.");

  // Taken now: once a subcommand is parsed, CLI11 gives that one's help instead.
  const std::string overview = app.help();

  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForVersion& version) {
    fmt::print("{}\n", version.what());
    return ExitCode::good;
  } catch (const CLI::CallForHelp&) {
    fmt::print("{}", explain->parsed() ? explain->help("rapt") : overview);
    return ExitCode::good;
  } catch (const CLI::ParseError& error) {
    const std::string_view more = explain->parsed() ? "rapt explain --help" : "rapt --help";
    return complain(ExitCode::wrong_usage, fmt::format("{} ({} lists what there is)", error.what(), more));
  }

  if (explain->parsed()) return run_explain(explain_options);
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
    code = rapt::cli::run(argc, argv);
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
