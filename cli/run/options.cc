#include "cli/run/options.h"

#include <array>
#include <string_view>

#include <fmt/format.h>

#include "cli/command.h"
#include "cli/files/array_files.h"
#include "cli/files/file_options.h"
#include "cli/view/explorer_page.h"

namespace rapt::cli {
namespace {

constexpr std::array<std::pair<std::string_view, WeightsOf>, 2> kWeightsOf{
    {{"all", WeightsOf::all}, {"mean", WeightsOf::mean}}};
constexpr std::array<std::pair<std::string_view, Stage>, 4> kStages{
    {{"raw", Stage::raw}, {"capped", Stage::capped}, {"masked", Stage::masked}, {"weights", Stage::weights}}};

std::pair<Stage, std::string> score_file(const std::string& text) {
  const std::size_t colon = text.find(':');
  if (colon == std::string::npos || colon + 1 == text.size()) {
    throw BadValue("--scores", fmt::format("'{}' is not STAGE:FILE, as in masked:scores.npy; the stages are "
                                           "raw, capped, masked and weights",
                                           text));
  }
  return {chosen("--scores", text.substr(0, colon), kStages), text.substr(colon + 1)};
}

void add_inputs(Command& command, RunOptions& options) {
  const auto file = [&](const char* name, std::string& value, const char* help) {
    command.text(name, "FILE", value, help);
  };
  file("--input", options.input, "Input of self-attention: query, key and value at once");
  file("--query", options.query, "Queries (with --key and --value)");
  file("--key", options.key, "Keys (default: as --query)");
  file("--value", options.value, "Values (default: as --key)");
  file("--model", options.model, "Weights of a layer, .safetensors or .npz (default: attention without projections)");
  command.text("--prefix", "TEXT", options.prefix, "Prefix of the layer's tensor names (rapt inspect lists them)");
  command.one("--heads", "N", "Number of query heads (default: as the model's file or config.json beside it states)",
              [&](const std::string& text) { options.heads = whole_number("--heads", text, 1, kMostWhole); });
  command.one("--kv-heads", "N", "Number of key/value heads (default: from the shapes)",
              [&](const std::string& text) { options.kv_heads = whole_number("--kv-heads", text, 1, kMostWhole); });
  command.flag("--length-first", options.length_first, "Inputs are (L, B, E) instead of (B, L, E)");
  command.flag("--add-zero-attention", options.add_zero_attention, "Append a key and a value of zeros (add_zero_attn)");
}

void add_outputs(Command& command, RunOptions& options) {
  const auto file = [&](const char* name, std::string& value, const char* help) {
    command.text(name, "FILE", value, help);
  };
  file("--out", options.out, "Write the output as .npy (default: print a summary)");
  file("--weights", options.weights, "Write the attention weights");
  command.choice("--weights-of", options.weights_of, kWeightsOf,
                 "Weights of every head (default), or their mean over heads");
  file("--html", options.html, "Write an HTML page that shows the weights of every head");
  file("--lse", options.lse, "Write the log-sum-exp of each row of scores");
  command.many("--scores", "raw|capped|masked|weights:FILE", "Write the scores at a stage; can be repeated",
               [&](const std::vector<std::string>& texts) {
                 for (const std::string& text : texts) options.scores.push_back(score_file(text));
               });
  command.flag("--json", options.json, "Print the summary as JSON");
}

}  // namespace

Command add_run(Command& rapt, RunOptions& options) {
  Command command = rapt.below("run", "Run attention, or a layer from a file, on arrays from files");
  add_inputs(command, options);
  add_rotary_flags(command, options);
  add_attention_flags(command, options);
  add_outputs(command, options);
  command.footer(
      "Files are .npy; FILE.npz:NAME and FILE.safetensors:NAME select one tensor.\n"
      "- is standard input or output. Without an input, a small example runs; without any option, the built-in model "
      "is "
      "shown.\n"
      "  rapt inspect m.safetensors\n"
      "  rapt run --model m.safetensors --heads 8 --input x.npy --causal --out y.npy");
  return command;
}

void check_run_options(const RunOptions& options) {
  const auto refuse = [](const std::string& what) { throw UsageError(what); };
  if (!options.input.empty() && (!options.query.empty() || !options.key.empty() || !options.value.empty())) {
    refuse("--input already sets query, key and value; give either --input, or --query, --key and --value");
  }
  if (options.query.empty() && (!options.key.empty() || !options.value.empty())) {
    refuse("--key and --value require --query; for self-attention give --input");
  }
  if (options.key.empty() && !options.value.empty()) refuse("--value requires --key");
  if (!options.model.empty() && !options.has_input()) {
    refuse("--model requires an input; give --input x.npy, an array of shape (B, L, E)");
  }
  if (!options.model.empty() && !options.model.ends_with(".safetensors") && !options.model.ends_with(".npz")) {
    refuse(
        fmt::format("--model: {}: unknown file extension; expected .safetensors or .npz. From PyTorch: "
                    "safetensors.torch.save_file(layer.state_dict(), \"layer.safetensors\")",
                    options.model));
  }
  if (options.model.empty() && !options.prefix.empty()) refuse("--prefix selects a layer in a file; give --model too");
  if (options.model.empty() && options.rotary) refuse("--rotary applies only to a layer; give --model too");
  if (options.model.empty() && options.add_zero_attention) {
    refuse("--add-zero-attention applies only to a layer; give --model too");
  }
  if (!options.rotary && options.position > 0) refuse("--position applies only to rotary embedding; give --rotary too");
  if (!options.has_input() && (!options.mask.empty() || !options.sinks.empty())) {
    refuse("no input; give --input x.npy, or --query, --key and --value");
  }
  if (options.mask.empty() && (options.mask_true != MaskTrue::unsaid || options.mask_of != MaskOf::unsaid)) {
    refuse("--mask-true and --mask-of describe a mask; give --mask m.npy too");
  }
  if (options.mask.empty() && options.mask_fill) refuse("--mask-fill sets the score of masked keys; give --mask too");
  if (options.dropout == 0.0 && options.attention.dropout.seed != 0) {
    refuse("--seed is the seed of dropout; give --dropout too");
  }
  if (!options.wants_weights() && options.weights_of != WeightsOf::unsaid) {
    refuse("--weights-of selects which weights to write; give --weights w.npy too");
  }
  if (options.model.empty() && options.kv_heads > 0 && options.key.empty()) {
    refuse("--kv-heads requires separate keys; give --key and --value too, or --model");
  }
  std::vector<std::pair<std::string, std::string>> outputs = {
      {"--out", options.out}, {"--weights", options.weights}, {"--lse", options.lse}};
  for (const auto& [stage, path] : options.scores) outputs.emplace_back("--scores", path);
  if (!options.html.empty()) {
    if (options.html == "-")
      refuse("--html: cannot write a page to standard output; give a file, such as --html heads.html");
    check_output("--html", options.html);
    find_page();  // before any work is done
  }
  int to_stdout = options.json ? 1 : 0;
  for (const auto& [option, path] : outputs) {
    if (path.empty()) continue;
    check_output(option, path);
    if (path.ends_with(".npz") || path.ends_with(".safetensors")) {
      refuse(
          fmt::format("{}: {} does not end in .npy, the only format written here; write an .npy file, and convert it "
                      "with rapt convert",
                      option, path));
    }
    if (path == "-" && ++to_stdout > 1) {
      refuse(options.json ? fmt::format("{} - and --json both write to standard output; give a file", option)
                          : "only one output can go to standard output; give the others files");
    }
  }
}

}  // namespace rapt::cli
