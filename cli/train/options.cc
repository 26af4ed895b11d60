#include <limits>

#include <fmt/format.h>

#include "cli/train/train.h"
#include "train/text.h"

namespace rapt::cli {
namespace {

constexpr std::int64_t kMost = std::numeric_limits<std::int32_t>::max();

void add_whole(Command& command, const char* name, std::int64_t& value, const char* help) {
  command.whole(name, value, kMost, fmt::format("{} ({})", help, value));
}

// What every task takes.
void add_common(Command& command, const char* task, TrainOptions& options, const train::Recipe& recipe) {
  command.one("--seed", "N", "Of the parameters and the batches (1)", [&options](const std::string& text) {
    options.seed =
        static_cast<std::uint64_t>(whole_number("--seed", text, 0, std::numeric_limits<std::int64_t>::max()));
  });
  command.one("--steps", "N", fmt::format("At most so many ({})", recipe.steps),
              [&options](const std::string& text) { options.steps = whole_number("--steps", text, 1, kMost); });
  command.one("--every", "N", fmt::format("Evaluate and save after so many steps ({})", recipe.every),
              [&options](const std::string& text) { options.every = whole_number("--every", text, 1, kMost); });
  command.text("--out", "FILE", options.out, "The trained model (TASK.safetensors)");
  command.flag("--resume", options.resume, "Go on from FILE.checkpoint, bit for bit");
  command.flag("--restart", options.restart, "Begin again, though there is a FILE.checkpoint");
  command.exclude("--restart", "--resume");
  command.flag("--json", options.json, "Print the curve and the result as data");
  command.choice("--color", options.color, kColors, "When to colour");
  command.when_given([&options, task] { options.task = task; });
}

void add_sizes(Command& command, train::Recipe& recipe) {
  add_whole(command, "--layers", recipe.model.layers, "Blocks of attention and MLP");
  add_whole(command, "--heads", recipe.model.heads, "Heads of each; they divide the width");
  add_whole(command, "--width", recipe.model.width, "Numbers of a token; the MLP has four times as many");
  add_whole(command, "--context", recipe.model.context, "Characters that the model sees at once");
  add_whole(command, "--batch", recipe.batch, "Pieces of text in a step");
  command.one("--rate", "X", fmt::format("Of Adam ({})", recipe.rate),
              [&recipe](const std::string& text) { recipe.rate = real_number("--rate", text, 1e-9, 1.0); });
  command.one("--dropout", "X", "Of attention and what layers add (0)",
              [&recipe](const std::string& text) { recipe.model.dropout = real_number("--dropout", text, 0.0, 0.99); });
}

}  // namespace

Command add_train(Command& rapt, TrainOptions& options) {
  Command command = rapt.below("train", "Train a small transformer, watch it learn, and keep it");
  command.require_below();
  command.footer(
      "While it trains, FILE.checkpoint is replaced at every evaluation, whole or not at all:\n"
      "a kill loses at most what came since. Ctrl-C saves too, and ends with exit code 130;\n"
      "the same command with --resume goes on as if nothing had happened. The checkpoint is\n"
      "removed when the goals are reached; where --steps came first, more of them go on from it.\n"
      "Exit code 3: the goals were not reached. Then:\n"
      "  rapt generate induction.safetensors");
  const auto add = [&](const char* name, const char* help, const train::Recipe& recipe) {
    Command task = command.below(name, help);
    add_common(task, name, options, recipe);
    return task;
  };
  add("induction", "2 layers of one head learn to go on with what was repeated: an induction head", {});
  add("reverse", "1 layer learns to say twelve letters backwards", {});
  add("dates", "2 layers learn to write dates of four forms as ISO 8601 has them", {.steps = 3000});
  options.recipe = train::Text::standard_recipe();
  Command text = add("text", "A character model of your own text", options.recipe);
  text.place("file", "FILE", "A text, UTF-8; its last tenth is held out",
             [&options](const std::string& file) { options.file = file; });
  add_sizes(text, options.recipe);
  return command;
}

}  // namespace rapt::cli
