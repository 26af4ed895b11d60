#include "cli/check/check.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <optional>
#include <string_view>
#include <unistd.h>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "cli/check/bits.h"
#include "cli/check/tensor_core.h"
#include "cli/command.h"

namespace rapt::cli {
namespace {

constexpr std::array<std::pair<std::string_view, std::optional<Engine>>, 3> kEngines{
    {{"reference", Engine::reference}, {"cpu", Engine::cpu}, {"cuda", Engine::cuda}}};

// Progress as one line that is updated on a terminal, or as a few lines elsewhere, so that logs stay short.
class Progress {
 public:
  void operator()(std::int64_t done, std::int64_t total, std::int64_t wrong) {
    const std::int64_t tenth = 10 * done / total;
    if (!terminal_ && tenth == shown_) return;
    if (terminal_ && done % 10 != 0 && done != total) return;
    shown_ = tenth;
    fmt::print(stderr, "{}{} of {} cases, {} failures{}", terminal_ ? "\r" : "", done, total, wrong,
               terminal_ && done < total ? "" : "\n");
  }

 private:
  bool terminal_ = isatty(STDERR_FILENO) != 0;
  std::int64_t shown_ = 0;
};

std::string repeat_with(const CheckFailure& failure) {
  const CheckTarget& target = failure.target;
  return fmt::format(
      "rapt check --case {}{}", failure.case_name,
      target.engine == Engine::cpu ? " --isa " + target.instruction_set : " --engine " + target.engine_name());
}

std::int64_t count_of(const std::string& option, const std::string& text) {
  const bool digits = !text.empty() && text.find_first_not_of("0123456789") == std::string::npos;
  if (!digits || text.size() >= 19) throw BadValue(option, text + " is not a non-negative integer");
  return std::stoll(text);
}

void print_table(const CheckOptions& options, const CheckReport& report) {
  if (options.plan.case_name.empty()) {
    fmt::print("case list and {} random cases, seeds from {}: {:.1f} s\n\n", options.plan.random, options.plan.seed,
               report.seconds);
  }
  const auto worst = [](double part, const std::string& name) { return fmt::format("{:.2f}  {}", part, name); };
  std::size_t width = std::string_view("worst error / limit").size();
  for (const CheckScore& score : report.scores) width = std::max(width, worst(score.worst, score.worst_case).size());
  fmt::print("{:<14}{:>8}{:>16}{:>8}   {:<{}}  {}\n", "engine", "cases", "with gradients", "differ",
             "worst error / limit", width, "worst gradient error / limit");
  for (const CheckScore& score : report.scores) {
    fmt::print("{:<14}{:>8}{:>16}{:>8}   {:<{}}  {}\n", score.target.name(), score.cases, score.gradients, score.differ,
               worst(score.worst, score.worst_case), width, worst(score.worst_gradient, score.worst_gradient_case));
  }
  for (const CheckScore& score : report.scores) {
    if (score.left_out == 0) continue;
    fmt::print("{}: {} cases skipped: {}\n", score.target.name(), score.left_out, score.left_out_because);
  }
  fmt::print("\n{}\n",
             report.good() ? "✓ all results agree with the reference" : "✗ results differ from the reference:");
  for (const CheckFailure& failure : report.failures) {
    fmt::print("\n{}: {}\n  {}\n  reproduce: {}\n", failure.target.name(), failure.what, failure.description,
               repeat_with(failure));
  }
}

// An error is infinite if a result is not finite where it should be. JSON has no infinity, so it is printed as −1.
double finite(double error) { return std::isfinite(error) ? error : -1.0; }

void print_json(const CheckOptions& options, const CheckReport& report) {
  nlohmann::ordered_json data = {{"schema", 1},
                                 {"good", report.good()},
                                 {"random", options.plan.random},
                                 {"seed", options.plan.seed},
                                 {"seconds", report.seconds}};
  for (const CheckScore& score : report.scores) {
    data["engines"].push_back({{"engine", score.target.engine_name()},
                               {"instruction_set", score.target.instruction_set},
                               {"cases", score.cases},
                               {"left_out", score.left_out},
                               {"left_out_because", score.left_out_because},
                               {"gradients", score.gradients},
                               {"differ", score.differ},
                               {"worst_of_allowed", finite(score.worst)},
                               {"worst_case", score.worst_case},
                               {"worst_gradient_of_allowed", finite(score.worst_gradient)},
                               {"worst_gradient_case", score.worst_gradient_case},
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

void print_digests(const CheckOptions& options, const std::vector<CheckDigest>& digests) {
  if (options.json) {
    nlohmann::ordered_json data = {{"schema", 1}, {"random", options.plan.random}, {"seed", options.plan.seed}};
    for (const CheckDigest& digest : digests) {
      data["digests"].push_back({{"engine", digest.target.name()},
                                 {"cases", digest.cases},
                                 {"attention", digest.attention},
                                 {"layers", digest.layers}});
    }
    fmt::print("{}\n", data.dump());
    return;
  }
  fmt::print("{:<14}{:>8}  {:<18}{}\n", "engine", "cases", "attention", "layers");
  for (const CheckDigest& digest : digests) {
    fmt::print("{:<14}{:>8}  {:<18}{}\n", digest.target.name(), digest.cases, digest.attention, digest.layers);
  }
}

void print_table(const BitsReport& report) {
  fmt::print("{:<14}{:<34}{:>8}{:>8}   {}\n", "engine", "each row, computed again", "cases", "differ", "first");
  for (const BitsScore& score : report.scores) {
    fmt::print("{:<14}{:<34}{:>8}{:>8}   {}\n", score.target.name(), score.what, score.cases, score.differ,
               score.first_case);
  }
  if (report.left_out > 0)
    fmt::print("{} cases in f64 skipped: only the reference engine computes f64\n", report.left_out);
  fmt::print("\n{} ({:.1f} s)\n", report.good() ? "✓ a row has the same bits in every call" : "✗ bits differ",
             report.seconds);
}

void print_json(const BitsReport& report) {
  nlohmann::ordered_json data = {
      {"schema", 1}, {"good", report.good()}, {"left_out", report.left_out}, {"seconds", report.seconds}};
  data["ways"] = nlohmann::ordered_json::array();
  for (const BitsScore& score : report.scores) {
    data["ways"].push_back({{"engine", score.target.name()},
                            {"what", score.what},
                            {"cases", score.cases},
                            {"differ", score.differ},
                            {"first", score.first_case}});
  }
  fmt::print("{}\n", data.dump());
}

}  // namespace

Command add_check(Command& rapt, CheckOptions& options) {
  Command command = rapt.below("check", "Check every engine and instruction set of this machine against the reference");
  command.one("--random", "N", "Random cases in addition to the case list (default 200)",
              [&](const std::string& text) { options.plan.random = count_of("--random", text); });
  command.one("--seed", "S", "Seed of the first random case (default 1)", [&](const std::string& text) {
    options.plan.seed = static_cast<std::uint64_t>(count_of("--seed", text));
  });
  command.text("--case", "NAME", options.plan.case_name, "Run only this case, named as in a failure report");
  command.text("--isa", "NAME", options.plan.instruction_set, "Check only this instruction set (rapt info lists them)");
  command.choice("--engine", options.plan.engine, kEngines, "Check only this engine (default: all that run here)");
  command.flag("--digest", options.digest,
               "Print a digest of the bits of every result instead: equal digests mean equal bits");
  command.flag(
      "--bits", options.bits,
      "Compare bits instead: compute each case again, alone, in batches, in reverse order, split into calls and in "
      "other memory layouts");
  command.exclude("--bits", "--digest");
  command.flag(
      "--tensor-core", options.tensor_core,
      "Check the arithmetic of this GPU's tensor cores instead: random dot products of bf16 and f16, bit by bit");
  for (const char* other : {"--random", "--seed", "--case", "--isa", "--engine", "--digest", "--bits"})
    command.exclude("--tensor-core", other);
  command.flag("--json", options.json, "Print the result as JSON");
  return command;
}

ExitCode run_check_command(const CheckOptions& options) {
  if (options.tensor_core) return run_tensor_core_check(options.json);
  try {  // before any work
    planned_targets(options.plan);
    planned_cases({.case_name = options.plan.case_name});
  } catch (const Error& error) {
    throw UsageError(error.what());
  }
  Progress progress;
  const auto show = [&](std::int64_t done, std::int64_t total, std::int64_t wrong) { progress(done, total, wrong); };
  if (options.digest) {
    print_digests(options, run_digests(options.plan, show));
    return ExitCode::good;
  }
  if (options.bits) {
    const BitsReport bits = run_bits(options.plan, show);
    if (options.json) {
      print_json(bits);
    } else {
      print_table(bits);
    }
    return bits.good() ? ExitCode::good : ExitCode::numbers_differ;
  }
  const CheckReport report = run_check(options.plan, show);
  if (options.json) {
    print_json(options, report);
  } else {
    print_table(options, report);
  }
  return report.good() ? ExitCode::good : ExitCode::numbers_differ;
}

}  // namespace rapt::cli
