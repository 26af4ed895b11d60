#include "check.h"

#include <cmath>
#include <cstdio>
#include <unistd.h>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace rapt::cli {
namespace {

// One line that is written over on a terminal; elsewhere only a few lines, so that a log stays short.
class Progress {
 public:
  void operator()(std::int64_t done, std::int64_t total, std::int64_t wrong) {
    const std::int64_t tenth = 10 * done / total;
    if (!terminal_ && tenth == shown_) return;
    if (terminal_ && done % 10 != 0 && done != total) return;
    shown_ = tenth;
    fmt::print(stderr, "{}{} of {} cases, {} answers wrong{}", terminal_ ? "\r" : "", done, total, wrong,
               terminal_ && done < total ? "" : "\n");
  }

 private:
  bool terminal_ = isatty(STDERR_FILENO) != 0;
  std::int64_t shown_ = 0;
};

std::string repeat_with(const CheckFailure& failure) {
  const CheckTarget& target = failure.target;
  return fmt::format("rapt check --case {}{}{}", failure.case_name, target.engine == Engine::cpu ? " --isa " : "",
                     target.instruction_set);
}

// A validator says what is wrong, or nothing.
std::string not_a_count(const std::string& text) {
  const bool digits = !text.empty() && text.find_first_not_of("0123456789") == std::string::npos;
  return digits && text.size() < 19 ? "" : fmt::format("{} is not a whole number of 0 or more", text);
}

void print_table(const CheckOptions& options, const CheckReport& report) {
  if (options.plan.case_name.empty()) {
    fmt::print("the case list and {} random cases, seeds from {}: {:.1f} s\n\n", options.plan.random, options.plan.seed,
               report.seconds);
  }
  fmt::print("{:<14}{:>8}{:>8}   {:<26}\n", "engine", "cases", "differ", "worst error, of allowed");
  for (const CheckScore& score : report.scores) {
    fmt::print("{:<14}{:>8}{:>8}   {:.2f}  {}\n", score.target.name(), score.cases, score.differ, score.worst,
               score.worst_case);
  }
  fmt::print("\n{}\n", report.good() ? "✓ every answer is right" : "✗ numbers differ from the reference:");
  for (const CheckFailure& failure : report.failures) {
    fmt::print("\n{}: {}\n  {}\n  again: {}\n", failure.target.name(), failure.what, failure.description,
               repeat_with(failure));
  }
}

void print_json(const CheckOptions& options, const CheckReport& report) {
  nlohmann::ordered_json data = {{"schema", 1},
                                 {"good", report.good()},
                                 {"random", options.plan.random},
                                 {"seed", options.plan.seed},
                                 {"seconds", report.seconds}};
  for (const CheckScore& score : report.scores) {
    data["engines"].push_back({{"engine", score.target.engine == Engine::reference ? "reference" : "cpu"},
                               {"instruction_set", score.target.instruction_set},
                               {"cases", score.cases},
                               {"differ", score.differ},
                               // Infinite where an answer is not even finite where it should be: no number in JSON.
                               {"worst_of_allowed", std::isfinite(score.worst) ? score.worst : -1.0},
                               {"worst_case", score.worst_case},
                               {"seconds", score.seconds}});
  }
  data["failures"] = nlohmann::ordered_json::array();
  for (const CheckFailure& failure : report.failures) {
    data["failures"].push_back({{"engine", failure.target.name()},
                                {"what", failure.what},
                                {"case", failure.description},
                                {"seed", failure.seed},
                                {"again", repeat_with(failure)}});
  }
  fmt::print("{}\n", data.dump());
}

}  // namespace

CLI::App* add_check(CLI::App& app, CheckOptions& options) {
  CLI::App* command = app.add_subcommand("check", "Compare every engine and instruction set here with the reference");
  command->add_option("--random", options.plan.random, "Random cases besides the list (default 200)")
      ->check(CLI::Validator(not_a_count, ""))
      ->type_name("N");
  command->add_option("--seed", options.plan.seed, "Seed of the first random case (default 1)")
      ->check(CLI::Validator(not_a_count, ""))
      ->type_name("S");
  command->add_option("--case", options.plan.case_name, "Only this case, by the name a failure is printed with")
      ->type_name("NAME");
  command->add_option("--isa", options.plan.instruction_set, "Only this instruction set (rapt info lists them)")
      ->type_name("NAME");
  command->add_flag("--json", options.json, "Print the same as data");
  return command;
}

ExitCode run_check_command(const CheckOptions& options) {
  try {  // before any work
    planned_targets(options.plan);
    planned_cases({.case_name = options.plan.case_name});
  } catch (const Error& error) {
    throw UsageError(error.what());
  }
  Progress progress;
  const CheckReport report = run_check(
      options.plan, [&](std::int64_t done, std::int64_t total, std::int64_t wrong) { progress(done, total, wrong); });
  if (options.json) {
    print_json(options, report);
  } else {
    print_table(options, report);
  }
  return report.good() ? ExitCode::good : ExitCode::numbers_differ;
}

}  // namespace rapt::cli
