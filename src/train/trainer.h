// The training loop, one step at a time: the caller decides what to show, when to save and when to stop.
//
//   Trainer trainer(task, seed);
//   while (!trainer.done()) {
//     if (trainer.step()) trainer.save("m.safetensors.checkpoint");   // true: the step ended with an evaluation
//   }
//   trainer.save_model("m.safetensors");
//
// The state after a step depends only on task, seed and step, so a resumed run gives the same bits as an uninterrupted
// one.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "rapt/safetensors.h"
#include "rapt/transformer.h"
#include "train/task.h"

namespace rapt::train {

// One evaluation.
struct Point {
  std::int64_t step = 0;
  double training_loss = 0.0;  // mean over the steps since the previous point
  double loss = 0.0;           // on the task's evaluation
  std::vector<double> measures;

  bool operator==(const Point&) const = default;
};

class Trainer {
 public:
  Trainer(const Task& task, std::uint64_t seed);
  // From a file that save() wrote. Throws if its task, seed or settings differ, and says which.
  Trainer(const Task& task, std::uint64_t seed, const std::string& checkpoint);

  bool done() const { return reached_ || steps() >= task_.recipe().steps; }
  // Whether the task has goals, and the last evaluation reached all of them.
  bool reached() const { return reached_; }
  // Runs one step; true if it ended with an evaluation.
  bool step();

  // Applies to later steps. A saved file records the learning rate and the mask, and a run can be resumed only with the
  // same ones.
  void set_rate(double rate);
  void set_causal(bool causal) { model_.set_causal(causal); }
  double rate() const { return rate_; }

  std::int64_t steps() const { return steps_; }
  double last_loss() const { return last_loss_; }  // of the last step's batch
  const std::vector<Point>& curve() const { return curve_; }
  Evaluation evaluate() const { return task_.evaluate(model_); }  // of the current model
  // An evaluation under the causal mask, as in generation, where there is no future to attend to.
  Evaluation evaluate_causal();
  const Transformer& model() const { return model_; }

  // Saves everything needed to resume: the model, the optimizer, the curve. The file is replaced atomically.
  void save(const std::string& path) const;
  // Saves what is needed to use the model, and the curve.
  void save_model(const std::string& path) const;

 private:
  void record();
  // What must match for a run to be resumed with identical results.
  std::map<std::string, std::string> settings() const;
  static bool all_reached(const Evaluation& evaluation);
  std::map<std::string, std::string> metadata() const;
  void read(const std::string& path);

  const Task& task_;
  std::uint64_t seed_;
  Transformer model_;
  double rate_;
  std::int64_t steps_ = 0;
  double last_loss_ = 0.0;
  double loss_sum_ = 0.0;  // since the last evaluation
  std::vector<Point> curve_;
  bool reached_ = false;
};

// The description stored in a model file.
struct ModelCard {
  std::string task;
  Characters characters;
  std::int64_t steps;
};
ModelCard model_card(const SafetensorsFile& file, const std::string& name);

}  // namespace rapt::train
