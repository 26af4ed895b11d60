// The final report of training: measures, loss curve and files.
#pragma once

#include <string>

#include "cli/terminal/terminal.h"
#include "train/trainer.h"

namespace rapt::cli {

struct TrainReport {
  const train::Task& task;
  const train::Trainer& trainer;
  std::uint64_t seed;
  double seconds;
  double tokens_per_second;
  bool interrupted;
  std::string model_file;       // "": none was written
  std::string checkpoint_file;  // "": there is none
};

void print_train_report(const TrainReport& report, const Terminal& terminal);
void print_train_json(const TrainReport& report);

}  // namespace rapt::cli
