#include "cli/train/train.h"

#include <cerrno>
#include <charconv>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <system_error>

#include <fmt/format.h>

#include "cli/files/array_files.h"
#include "cli/terminal/interrupt.h"
#include "cli/train/progress.h"
#include "cli/train/report.h"
#include "rapt/error.h"
#include "rapt/safetensors.h"
#include "train/dates.h"
#include "train/induction.h"
#include "train/reverse.h"
#include "train/text.h"
#include "train/trainer.h"

namespace rapt::cli {
namespace {

constexpr double kMostParameters = 1e9;  // with gradients and moments, 16 GB

std::string read_text(const std::string& path) {
  require_file("text", path);
  std::ifstream file(path, std::ios::binary);
  std::string text{std::istreambuf_iterator<char>(file), {}};
  if (!file) throw Error(fmt::format("text: {} cannot be read; check its permissions", path));
  if (text.empty()) throw Error(fmt::format("text: {} is empty; give a text to learn from", path));
  return text;
}

std::unique_ptr<train::Task> make_text(const TrainOptions& options) {
  train::Recipe recipe = options.recipe;
  if (recipe.model.width % recipe.model.heads != 0) {
    throw UsageError(fmt::format("--heads: {} heads do not divide a width of {}; choose a divisor of the width",
                                 recipe.model.heads, recipe.model.width));
  }
  recipe.model.hidden = 4 * recipe.model.width;
  const double parameters = 12.0 * static_cast<double>(recipe.model.layers) * static_cast<double>(recipe.model.width) *
                            static_cast<double>(recipe.model.width);
  if (parameters > kMostParameters) {
    throw UsageError(fmt::format("--width: {} layers of width {} have {:.1e} parameters; the limit is {:.0e}",
                                 recipe.model.layers, recipe.model.width, parameters, kMostParameters));
  }
  return std::make_unique<train::Text>(read_text(options.file), options.file, recipe);
}

std::unique_ptr<train::Task> make_task(const TrainOptions& options) {
  std::unique_ptr<train::Task> task;
  if (options.task == "induction") task = std::make_unique<train::Induction>();
  if (options.task == "reverse") task = std::make_unique<train::Reverse>();
  if (options.task == "dates") task = std::make_unique<train::Dates>();
  if (options.task == "text") task = make_text(options);
  if (options.steps) task->set_steps(*options.steps);
  if (options.every) task->set_every(*options.every);
  return task;
}

bool exists(const std::string& path) {
  std::error_code error;
  return std::filesystem::exists(path, error);
}

// Checks, before any work, that the output can be written, that it would replace only a model from rapt train, and that
// the checkpoint of an unfinished run would not be lost.
void check_files(const TrainOptions& options) {
  const std::string model = options.model_file(), checkpoint = options.checkpoint_file();
  check_output("--out", model);
  if (exists(model)) {
    try {
      (void)train::model_card(SafetensorsFile(model), model);
    } catch (const Error&) {
      throw Error(
          fmt::format("--out: {} exists and is not a model from rapt train; choose another file, or remove it", model));
    }
  }
  if (exists(checkpoint) && !options.resume && !options.restart) {
    throw UsageError(fmt::format(
        "{} exists, from an unfinished run; give --resume to continue it, --restart to start over, or another --out",
        checkpoint));
  }
}

// A run that was killed while writing leaves .NAME.PID-….tmp beside its file. The files of dead processes are removed.
void remove_leftovers(const std::string& path) {
  const std::filesystem::path target(path);
  const std::filesystem::path folder = target.has_parent_path() ? target.parent_path() : ".";
  const std::string start = "." + target.filename().string() + ".";
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
    const std::string name = entry.path().filename().string();
    if (!name.starts_with(start) || !name.ends_with(".tmp")) continue;
    int process = 0;
    const char* last = name.data() + name.size();
    const auto [end, bad] = std::from_chars(name.data() + start.size(), last, process);
    if (bad != std::errc() || end == last || *end != '-' || process <= 0) continue;
    if (kill(process, 0) != 0 && errno == ESRCH) std::filesystem::remove(entry.path(), error);
  }
}

train::Trainer begin(const TrainOptions& options, const train::Task& task) {
  const std::string checkpoint = options.checkpoint_file();
  if (!options.resume) return {task, options.seed};
  if (!exists(checkpoint)) {
    fmt::print(stderr, "{} not found; starting at step 0\n", checkpoint);
    return {task, options.seed};
  }
  try {
    train::Trainer trainer(task, options.seed, checkpoint);
    fmt::print(stderr, "{}: resuming at step {}\n", checkpoint, trainer.steps());
    return trainer;
  } catch (const Error& error) {
    throw Error(fmt::format("--resume: {} (--restart starts over)", error.what()));
  }
}

void say_what_next(const TrainReport& report, std::int64_t steps) {
  if (report.interrupted) {
    fmt::print(stderr, "saved {}\nthe same command with --resume continues from step {}\n", report.checkpoint_file,
               report.trainer.steps());
    return;
  }
  fmt::print(stderr, "wrote {}; now try: rapt generate {}\n", report.model_file, report.model_file);
  if (!report.checkpoint_file.empty()) {
    fmt::print(stderr, "kept {}\nthe same command with --resume --steps {} continues training\n",
               report.checkpoint_file, 2 * steps);
  }
}

}  // namespace

ExitCode run_train(const TrainOptions& options) {
  check_files(options);
  const std::unique_ptr<train::Task> task = make_task(options);
  const std::string model = options.model_file(), checkpoint = options.checkpoint_file();
  for (const std::string& path : {model, checkpoint}) remove_leftovers(path);
  train::Trainer trainer = begin(options, *task);

  const Interrupt interrupt;
  double seconds = 0.0, tokens_per_second = 0.0;
  {
    TrainProgress progress(*task, options.color, trainer.steps());
    while (!trainer.done() && !interrupt.asked()) {
      const bool evaluated = trainer.step();
      progress.show(trainer, evaluated);
      if (evaluated && !trainer.reached()) trainer.save(checkpoint);
    }
    seconds = progress.seconds(), tokens_per_second = progress.tokens_per_second(trainer);
  }
  const bool interrupted = !trainer.done();
  if (!trainer.reached()) trainer.save(checkpoint);
  if (!interrupted) trainer.save_model(model);
  if (trainer.reached()) {  // removed only now that the model is saved
    std::error_code none;
    std::filesystem::remove(checkpoint, none);
  }
  const TrainReport report{*task,
                           trainer,
                           options.seed,
                           seconds,
                           tokens_per_second,
                           interrupted,
                           interrupted ? "" : model,
                           trainer.reached() ? "" : checkpoint};
  if (options.json) {
    print_train_json(report);
  } else {
    print_train_report(report, detect_terminal(options.color));
  }
  say_what_next(report, task->recipe().steps);
  if (interrupted) return ExitCode::interrupted;
  const bool has_goals = options.task != "text";
  return trainer.reached() || !has_goals ? ExitCode::good : ExitCode::numbers_differ;
}

}  // namespace rapt::cli
