// `rapt generate`: generates text with a trained model, token by token with a KV cache.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "cli/command.h"
#include "cli/exit_code.h"

namespace rapt::cli {

struct GenerateOptions {
  std::string model;  // "": the built-in model
  std::optional<std::string> prompt;
  std::optional<std::int64_t> tokens;
  std::optional<double> temperature;
  std::int64_t top_k = 0;
  std::uint64_t seed = 1;
  bool json = false;
  ColorChoice color = ColorChoice::automatic;
};

Command add_generate(Command& rapt, GenerateOptions& options);
ExitCode run_generate(const GenerateOptions& options);

}  // namespace rapt::cli
