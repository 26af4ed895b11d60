// `rapt train`: trains a small transformer on a task, with checkpoints that survive a kill at any moment.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "cli/command.h"
#include "cli/exit_code.h"
#include "train/task.h"

namespace rapt::cli {

struct TrainOptions {
  std::string task;  // "induction"
  std::string file;  // of `text`
  std::uint64_t seed = 1;
  std::optional<std::int64_t> steps, every;
  train::Recipe recipe;  // of `text`
  std::string out;       // "": TASK.safetensors
  bool resume = false;
  bool restart = false;
  bool json = false;
  ColorChoice color = ColorChoice::automatic;

  std::string model_file() const { return out.empty() ? task + ".safetensors" : out; }
  std::string checkpoint_file() const { return model_file() + ".checkpoint"; }
};

Command add_train(Command& rapt, TrainOptions& options);
ExitCode run_train(const TrainOptions& options);

}  // namespace rapt::cli
