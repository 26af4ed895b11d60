#include <limits>

#include <fmt/format.h>

#include "cli/train/train.h"
#include "train/text.h"

namespace rapt::cli {
namespace {

constexpr std::int64_t kMost = std::numeric_limits<std::int32_t>::max();

void add_whole(Command& command, const char* name, std::int64_t& value, const char* help) {
  command.whole(name, value, kMost, fmt::format("{} (default {})", help, value));
}

// The options that all tasks share.
void add_common(Command& command, const char* task, TrainOptions& options, const train::Recipe& recipe) {
  command.one("--seed", "N", "Seed of the parameters and the batches (default 1)", [&options](const std::string& text) {
    options.seed =
        static_cast<std::uint64_t>(whole_number("--seed", text, 0, std::numeric_limits<std::int64_t>::max()));
  });
  command.one("--steps", "N", fmt::format("Maximum number of steps (default {})", recipe.steps),
              [&options](const std::string& text) { options.steps = whole_number("--steps", text, 1, kMost); });
  command.one("--every", "N",
              fmt::format("Steps between evaluations, each of which saves a checkpoint (default {})", recipe.every),
              [&options](const std::string& text) { options.every = whole_number("--every", text, 1, kMost); });
  command.text("--out", "FILE", options.out, "Write the trained model to FILE (default TASK.safetensors)");
  command.flag("--resume", options.resume, "Continue from FILE.checkpoint, with bit-identical results");
  command.flag("--restart", options.restart, "Start over, even if FILE.checkpoint exists");
  command.exclude("--restart", "--resume");
  command.flag("--json", options.json, "Print the loss curve and the result as JSON");
  command.choice("--color", options.color, kColors, "When to use colour");
  command.when_given([&options, task] { options.task = task; });
}

void add_sizes(Command& command, train::Recipe& recipe) {
  add_whole(command, "--layers", recipe.model.layers, "Transformer blocks");
  add_whole(command, "--heads", recipe.model.heads, "Heads per block; must divide the width");
  add_whole(command, "--width", recipe.model.width, "Embedding size; the MLP is four times as wide");
  add_whole(command, "--context", recipe.model.context, "Context length, in characters");
  add_whole(command, "--batch", recipe.batch, "Batch size");
  command.one("--rate", "X", fmt::format("Learning rate of Adam (default {})", recipe.rate),
              [&recipe](const std::string& text) { recipe.rate = real_number("--rate", text, 1e-9, 1.0); });
  command.one("--dropout", "X", "Dropout rate, for attention weights and residual branches (default 0)",
              [&recipe](const std::string& text) { recipe.model.dropout = real_number("--dropout", text, 0.0, 0.99); });
}

}  // namespace

Command add_train(Command& rapt, TrainOptions& options) {
  Command command = rapt.below("train", "Train a small transformer, and save it");
  command.require_below();
  command.footer(
      "FILE.checkpoint is replaced atomically at every evaluation, so a killed run loses only the steps since the last "
      "one. Ctrl-C saves too, and exits with code 130; the same command with --resume continues, with the same results "
      "as an uninterrupted run. The checkpoint is removed once the goals are reached; if the steps run out "
      "first, --resume with a higher --steps continues.\nExit code 3: the goals were not reached. To use the model:\n"
      "  rapt generate induction.safetensors");
  const auto add = [&](const char* name, const char* help, const train::Recipe& recipe) {
    Command task = command.below(name, help);
    add_common(task, name, options, recipe);
    return task;
  };
  add("induction", "2 layers with 1 head each learn to continue a repeated pattern (an induction head)", {});
  add("reverse", "1 layer learns to reverse twelve letters", {});
  add("dates", "2 layers learn to convert dates in four formats to ISO 8601", {.steps = 3000});
  options.recipe = train::Text::standard_recipe();
  Command text = add("text", "A character-level model of your own text", options.recipe);
  text.place("file", "FILE", "UTF-8 text; the last tenth is held out for validation",
             [&options](const std::string& file) { options.file = file; });
  add_sizes(text, options.recipe);
  return command;
}

}  // namespace rapt::cli
