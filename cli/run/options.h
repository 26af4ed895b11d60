// `rapt run`: attention, or a layer from a file, on arrays from files. The options and their parsing.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cli/exit_code.h"
#include "rapt/attention.h"
#include "rapt/rotary.h"

namespace rapt::cli {

class Command;

enum class MaskTrue : std::uint8_t { unsaid, keep, drop };
enum class MaskOf : std::uint8_t { unsaid, batch, heads, keys };
enum class WeightsOf : std::uint8_t { unsaid, all, mean };

struct RunOptions {
  // Inputs, as files.
  std::string input, query, key, value;
  std::string model, prefix, mask, sinks;
  MaskTrue mask_true = MaskTrue::unsaid;
  MaskOf mask_of = MaskOf::unsaid;
  std::optional<double> mask_fill;
  std::int64_t heads = 0;
  std::int64_t kv_heads = 0;
  bool length_first = false;
  bool add_zero_attention = false;
  std::optional<RotaryOptions> rotary;
  std::int64_t position = 0;

  // The options of attention that fit on a command line; the dropout rate is separate, because a layer has its own.
  AttentionOptions attention;
  double dropout = 0.0;
  std::optional<DType> dtype;

  // Outputs, as files.
  std::string out, weights, lse, html;
  WeightsOf weights_of = WeightsOf::unsaid;  // all
  std::vector<std::pair<Stage, std::string>> scores;
  bool json = false;

  bool wants_weights() const { return !weights.empty() || !html.empty(); }
  bool has_input() const { return !input.empty() || !query.empty(); }
};

Command add_run(Command& rapt, RunOptions& options);
void add_attention_flags(Command& command, RunOptions& options);  // attention_options.cc
void add_rotary_flags(Command& command, RunOptions& options);     // rotary_options.cc
// Rejects invalid combinations before any file is opened.
void check_run_options(const RunOptions& options);

ExitCode run_run(const RunOptions& options);

}  // namespace rapt::cli
