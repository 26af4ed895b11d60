// Training progress: a line that is updated on a terminal, or occasional lines elsewhere.
#pragma once

#include <chrono>
#include <string>

#include "cli/terminal/terminal.h"
#include "train/trainer.h"

namespace rapt::cli {

class TrainProgress {
 public:
  TrainProgress(const train::Task& task, ColorChoice color, std::int64_t first_step);
  TrainProgress(const TrainProgress&) = delete;
  TrainProgress& operator=(const TrainProgress&) = delete;
  ~TrainProgress();  // clears the line

  void show(const train::Trainer& trainer, bool evaluated);
  double seconds() const;
  double tokens_per_second(const train::Trainer& trainer) const;

 private:
  using Clock = std::chrono::steady_clock;

  std::string numbers(const train::Trainer& trainer) const;
  std::string bar(const train::Trainer& trainer, int width) const;

  const train::Task& task_;
  Terminal terminal_;
  bool changes_;  // whether the line is updated: stderr is a capable terminal
  std::int64_t first_step_;
  Clock::time_point start_ = Clock::now();
  Clock::time_point shown_{};
  bool line_open_ = false;
};

}  // namespace rapt::cli
