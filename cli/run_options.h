// `rapt run`: attention, or a layer out of a file, on arrays from files. The options, and how they are read.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>

#include "exit_code.h"
#include "rapt/attention.h"
#include "rapt/rotary.h"

namespace rapt::cli {

enum class MaskTrue : std::uint8_t { unsaid, keep, drop };
enum class MaskOf : std::uint8_t { unsaid, batch, heads, keys };
enum class WeightsOf : std::uint8_t { unsaid, all, mean };

struct RunOptions {
  // Inputs, as files.
  std::string input, query, key, value;
  std::string model, prefix, mask;
  MaskTrue mask_true = MaskTrue::unsaid;
  MaskOf mask_of = MaskOf::unsaid;
  std::int64_t heads = 0;
  std::int64_t kv_heads = 0;
  bool length_first = false;
  std::optional<RotaryPairs> rotary;
  double rotary_base = 10000.0;

  AttentionOptions attention;  // causal, alignment, window, key lengths, scale, softcap, threads
  std::optional<DType> dtype;

  // Outputs, as files.
  std::string out, weights, lse;
  WeightsOf weights_of = WeightsOf::unsaid;  // all
  std::vector<std::pair<Stage, std::string>> scores;
  bool json = false;

  bool has_input() const { return !input.empty() || !query.empty(); }
};

CLI::App* add_run(CLI::App& app, RunOptions& options);
// Refuses what does not go together, before any file is opened.
void check_run_options(const RunOptions& options);

ExitCode run_run(const RunOptions& options);

}  // namespace rapt::cli
