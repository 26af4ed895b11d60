#include "run_options.h"

#include <array>
#include <charconv>
#include <cmath>
#include <limits>
#include <string_view>
#include <system_error>

#include <fmt/format.h>

#include "array_files.h"
#include "bench_arguments.h"
#include "file_options.h"

namespace rapt::cli {
namespace {

constexpr std::int64_t kMost = std::numeric_limits<std::int32_t>::max();

constexpr std::array<std::pair<std::string_view, MaskTrue>, 2> kMaskTrue{
    {{"keep", MaskTrue::keep}, {"drop", MaskTrue::drop}}};
constexpr std::array<std::pair<std::string_view, MaskOf>, 3> kMaskOf{
    {{"batch", MaskOf::batch}, {"heads", MaskOf::heads}, {"keys", MaskOf::keys}}};
constexpr std::array<std::pair<std::string_view, WeightsOf>, 2> kWeightsOf{
    {{"all", WeightsOf::all}, {"mean", WeightsOf::mean}}};
constexpr std::array<std::pair<std::string_view, Stage>, 4> kStages{
    {{"raw", Stage::raw}, {"capped", Stage::capped}, {"masked", Stage::masked}, {"weights", Stage::weights}}};
constexpr std::array<std::pair<std::string_view, bool>, 2> kAligned{{{"top-left", false}, {"bottom-right", true}}};
constexpr std::array<std::pair<std::string_view, RotaryPairs>, 2> kPairs{
    {{"half", RotaryPairs::half_split}, {"interleaved", RotaryPairs::interleaved}}};

double real_number(const std::string& option, const std::string& text) {
  double value = 0;
  const char* last = text.data() + text.size();
  const auto [end, error] = std::from_chars(text.data(), last, value);
  if (error != std::errc() || end != last || !std::isfinite(value)) {
    throw CLI::ValidationError(option, fmt::format("'{}' is not a number", text));
  }
  return value;
}

// 128,0: so many keys to the left and to the right; an empty side is open.
Window window_of(const std::string& text) {
  const std::vector<std::string> sides = split(text);
  if (sides.size() != 2) {
    throw CLI::ValidationError("--window", fmt::format("'{}' is not LEFT,RIGHT: 128,0 is 128 keys back and none ahead, "
                                                       "128, leaves the right side open",
                                                       text));
  }
  const auto side = [](const std::string& part) {
    return part.empty() ? std::optional<std::int64_t>() : whole_number("--window", part, 0, kMost);
  };
  return {side(sides[0]), side(sides[1])};
}

Alignment aligned(const std::string& option, const std::string& text) {
  return chosen(option, text, kAligned) ? Alignment::bottom_right() : Alignment::top_left();
}

std::pair<Stage, std::string> score_file(const std::string& text) {
  const std::size_t colon = text.find(':');
  if (colon == std::string::npos || colon + 1 == text.size()) {
    throw CLI::ValidationError("--scores",
                               fmt::format("'{}' is not STAGE:FILE, as in masked:scores.npy; the stages are "
                                           "raw, capped, masked and weights",
                                           text));
  }
  return {chosen("--scores", text.substr(0, colon), kStages), text.substr(colon + 1)};
}

void add_inputs(Adder& add, CLI::App& command, RunOptions& options) {
  const auto file = [&](const char* name, std::string& value, const char* help) {
    command.add_option(name, value, help)->type_name("FILE");
  };
  file("--input", options.input, "Tokens of self-attention: query, key and value in one");
  file("--query", options.query, "Queries; with --key and --value");
  file("--key", options.key, "Keys (default: the queries)");
  file("--value", options.value, "Values (default: the keys)");
  file("--model", options.model, "A layer, .safetensors or .npz; without it, plain attention");
  command.add_option("--prefix", options.prefix, "Where the layer's names begin (rapt inspect lists them)");
  add.one("--heads", "N", "Query heads",
          [&](const std::string& text) { options.heads = whole_number("--heads", text, 1, kMost); });
  add.one("--kv-heads", "N", "Key and value heads (default: from the shapes)",
          [&](const std::string& text) { options.kv_heads = whole_number("--kv-heads", text, 1, kMost); });
  command.add_flag("--length-first", options.length_first, "Tokens are (L, B, E), not (B, L, E)");
  add.one("--rotary", "half|interleaved", "The layer turns q and k by their position",
          [&](const std::string& text) { options.rotary = chosen("--rotary", text, kPairs); });
  add.one("--rotary-base", "X", "Its base (default 10000)",
          [&](const std::string& text) { options.rotary_base = real_number("--rotary-base", text); });
}

void add_attention(Adder& add, CLI::App& command, RunOptions& options) {
  AttentionOptions& attention = options.attention;
  command
      .add_option_function<std::vector<std::string>>(
          "--causal",
          [&](const std::vector<std::string>& texts) {
            attention.causal = true;
            if (!texts.empty() && !texts[0].empty()) attention.alignment = aligned("--causal", texts[0]);
          },
          "A token sees none that come after it; as --align where Lq, Lk differ")
      ->expected(0, 1)
      ->type_name("[top-left|bottom-right]");
  command.add_option("--mask", options.mask, "A mask: bool with --mask-true, or float, which is added")
      ->type_name("FILE");
  add.choice("--mask-true", options.mask_true, kMaskTrue, "What true means: the key is seen, or hidden");
  add.choice("--mask-of", options.mask_of, kMaskOf, "The mask is (B, Lq, Lk), (B*H, Lq, Lk), or (B, Lk)");
  add.one("--key-lengths", "LIST", "How many keys each row of the batch has: 5,7", [&](const std::string& text) {
    attention.key_lengths.clear();
    for (const std::string& part : split(text)) {
      attention.key_lengths.push_back(whole_number("--key-lengths", part, 0, kMost));
    }
  });
  add.one("--scale", "X", "Of the scores (default 1/sqrt(D))",
          [&](const std::string& text) { attention.scale = real_number("--scale", text); });
  add.one("--softcap", "X", "Scores stay between -X and X",
          [&](const std::string& text) { attention.softcap = real_number("--softcap", text); });
  add.one("--window", "L,R", "A token sees so many keys to its left and right",
          [&](const std::string& text) { attention.window = window_of(text); });
  add.one("--align", "top-left|bottom-right", "The first query stands at the first key, or the last at the last",
          [&](const std::string& text) { attention.alignment = aligned("--align", text); });
  add_dtype(add, options.dtype, "Compute in this type: inputs and parameters are rounded to it");
  add.one("--threads", "N", "At most so many (default: all)", [&](const std::string& text) {
    attention.threads = static_cast<int>(whole_number("--threads", text, 1, kMostThreads));
  });
}

void add_outputs(Adder& add, CLI::App& command, RunOptions& options) {
  const auto file = [&](const char* name, std::string& value, const char* help) {
    command.add_option(name, value, help)->type_name("FILE");
  };
  file("--out", options.out, "Write the output as .npy (default: a summary is printed)");
  file("--weights", options.weights, "Write the attention weights");
  add.choice("--weights-of", options.weights_of, kWeightsOf, "Those of every head (default), or their mean");
  file("--lse", options.lse, "Write the logarithm of each row's sum (plain attention)");
  command
      .add_option_function<std::vector<std::string>>(
          "--scores",
          [&](const std::vector<std::string>& texts) {
            for (const std::string& text : texts) options.scores.push_back(score_file(text));
          },
          "Scores at a stage: raw, capped, masked, weights (plain attention)")
      ->type_name("STAGE:FILE");
  command.add_flag("--json", options.json, "Print the summary as data");
}

}  // namespace

CLI::App* add_run(CLI::App& app, RunOptions& options) {
  CLI::App* command = app.add_subcommand("run", "Run attention, or a layer out of a file, on arrays from files");
  Adder add(*command);
  add_inputs(add, *command, options);
  add_attention(add, *command, options);
  add_outputs(add, *command, options);
  command->footer(
      "Files are .npy; FILE.npz:NAME and FILE.safetensors:NAME name one of several.\n"
      "- is standard input or output. Without any input, a small example runs. Your own:\n"
      "  rapt inspect model.safetensors\n"
      "  rapt run --model model.safetensors --heads 8 --input x.npy --causal --out y.npy");
  return command;
}

void check_run_options(const RunOptions& options) {
  const auto refuse = [](const std::string& what) { throw UsageError(what); };
  if (!options.input.empty() && (!options.query.empty() || !options.key.empty() || !options.value.empty())) {
    refuse("--input is query, key and value in one; give it alone, or --query, --key and --value");
  }
  if (options.query.empty() && (!options.key.empty() || !options.value.empty())) {
    refuse("--key and --value need --query beside them; for self-attention give --input");
  }
  if (options.key.empty() && !options.value.empty()) refuse("--value needs --key beside it");
  if (!options.model.empty() && !options.has_input()) {
    refuse("--model needs something to run on; give --input x.npy, an array (B, L, E)");
  }
  if (!options.model.empty() && !options.model.ends_with(".safetensors") && !options.model.ends_with(".npz")) {
    refuse(
        fmt::format("--model: {} is no .safetensors or .npz file, by its ending; PyTorch saves one with "
                    "safetensors.torch.save_file(layer.state_dict(), \"layer.safetensors\")",
                    options.model));
  }
  if (options.model.empty() && !options.prefix.empty()) refuse("--prefix names a layer of a file; give --model too");
  if (options.model.empty() && options.rotary) refuse("--rotary belongs to a layer; give --model too");
  if (!options.model.empty() && (!options.lse.empty() || !options.scores.empty())) {
    refuse("--lse and --scores are for plain attention; with --model there are --out and --weights");
  }
  if (!options.has_input() && (!options.mask.empty() || !options.lse.empty() || !options.scores.empty())) {
    refuse("there is no input; give --input x.npy, or --query, --key and --value");
  }
  if (options.mask.empty() && (options.mask_true != MaskTrue::unsaid || options.mask_of != MaskOf::unsaid)) {
    refuse("--mask-true and --mask-of say what a mask means; give --mask m.npy too");
  }
  if (options.weights.empty() && options.weights_of != WeightsOf::unsaid) {
    refuse("--weights-of says which weights to write; give --weights w.npy too");
  }
  if (options.model.empty() && options.kv_heads > 0 && options.key.empty()) {
    refuse("--kv-heads is for keys of their own; give --key and --value too, or --model");
  }
  std::vector<std::pair<std::string, std::string>> outputs = {
      {"--out", options.out}, {"--weights", options.weights}, {"--lse", options.lse}};
  for (const auto& [stage, path] : options.scores) outputs.emplace_back("--scores", path);
  int to_stdout = options.json ? 1 : 0;
  for (const auto& [option, path] : outputs) {
    if (path.empty()) continue;
    check_output(option, path);
    if (path.ends_with(".npz") || path.ends_with(".safetensors")) {
      refuse(fmt::format(
          "{}: {} would be an .npy file under another ending; write an .npy, and rapt convert turns it into "
          "the other kinds",
          option, path));
    }
    if (path == "-" && ++to_stdout > 1) {
      refuse(options.json ? fmt::format("{} - and --json both write to standard output; give a file", option)
                          : "only one output can go to standard output; give the others files");
    }
  }
}

}  // namespace rapt::cli
