// Runs a benchmark for the command.
#pragma once

#include <stdexcept>

#include <fmt/format.h>

#include "cli/exit_code.h"
#include "cli/terminal/output.h"
#include "rapt/error.h"

namespace rapt::cli {

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

}  // namespace rapt::cli
