// What every benchmark of the command does: its options, running it, refusing wrong answers, printing the result.
#pragma once

#include <cstdio>
#include <stdexcept>

#include <fmt/format.h>

#include "cli/command.h"
#include "cli/exit_code.h"
#include "cli/terminal/output.h"
#include "cli/terminal/page.h"
#include "rapt/error.h"

namespace rapt::cli {

// The options of a benchmark that runs one plan.
template <class Plan>
struct PlanOptions {
  bool asked = false;  // whether this benchmark was requested
  Plan plan;
  bool json = false;
  ColorChoice color = ColorChoice::automatic;
};

template <class Measuring>
void add_measuring(Command& command, Measuring& measuring) {
  command.whole("--reps", measuring.rounds, 100000, "Rounds; each times every case once (default 9)");
  command.seconds("--min-time", measuring.shortest_sample,
                  "Minimum seconds per sample; a faster call is repeated (default 0.02)");
}

template <class Plan>
void add_plan_options(Command& command, PlanOptions<Plan>& options) {
  command.when_given([&options] { options.asked = true; });
  command.numbers("--threads", options.plan.threads, kMostThreads, "Threads (default 1)");
  add_measuring(command, options.plan);
  command.flag("--json", options.json, "Print JSON");
  command.choice("--color", options.color, kColors, "When to use colour");
}

// Returns the result of run(). Clears the progress line; sizes that the library or the benchmark rejects are usage
// errors.
template <class Run>
auto measured(const Run& run) {
  const auto refused = [](const std::exception& error) {
    show_progress("");
    return UsageError(fmt::format("bench: {}", error.what()));
  };
  try {
    auto result = run();
    show_progress("");
    return result;
  } catch (const Error& error) {
    throw refused(error);
  } catch (const std::invalid_argument& error) {
    throw refused(error);
  }
}

// Whether all answers are within their limits; says which are not.
template <class Results, class NameOf>
bool all_good(const Results& results, const NameOf& name_of) {
  bool good = true;
  for (const auto& result : results) {
    if (result.check.good()) continue;
    good = false;
    fmt::print(stderr, "rapt: bench: {}: error {:.1e} exceeds the limit {:.1e}; nothing was timed\n", name_of(result),
               result.check.error, result.check.limit);
  }
  return good;
}

inline void say_no_sgemm() {
  fmt::print(stderr, "rapt: bench: no OpenBLAS, oneDNN or MKL was found, so there is no sgemm to compare with\n");
}

// Prints the page that show(page) writes.
template <class Show>
void show_page(ColorChoice color, const Show& show) {
  const Terminal terminal = detect_terminal(color);
  Page page(terminal);
  show(page);
  page.flush();
}

// Prints as_json() or the page of show(page), as the options say.
template <class Plan, class AsJson, class Show>
ExitCode print_result(const PlanOptions<Plan>& options, const AsJson& as_json, const Show& show) {
  if (options.json) {
    print(as_json() + "\n");
  } else {
    show_page(options.color, show);
  }
  return ExitCode::good;
}

}  // namespace rapt::cli
