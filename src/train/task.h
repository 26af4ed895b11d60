// A training task: its batches and its evaluation.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "rapt/transformer.h"
#include "train/characters.h"

namespace rapt::train {

// Tokens (B, L), and for each the next token, or kNoTarget if it cannot be predicted.
struct Batch {
  std::vector<std::int32_t> tokens, targets;
  std::int64_t rows = 0;
};

// How a task is trained: the model, the steps and the optimizer. The learning rate rises linearly over `warm_up` steps.
struct Recipe {
  TransformerConfig model{};
  std::int64_t batch = 32;
  double rate = 0.003;
  double beta2 = 0.99;
  double weight_decay = 0.0;
  double clip = 1.0;
  std::int64_t warm_up = 50;
  std::int64_t every = 50;    // steps between evaluations
  std::int64_t steps = 2000;  // at most
};

// A quality measure of a model.
struct Measure {
  std::string key;    // "accuracy"
  std::string words;  // printed after a percentage: "accuracy on the reversed letters"
  double value = 0.0;
  std::optional<double> goal{};  // training ends when every measure with a goal has reached it

  bool reached() const { return !goal || value >= *goal; }
};

struct Evaluation {
  double loss = 0.0;
  std::vector<Measure> measures;  // the accuracy first
};

class Task {
 public:
  Task(const Characters& characters, const Recipe& recipe) : characters_(characters), recipe_(recipe) {
    recipe_.model.vocabulary = characters_.size();
  }
  virtual ~Task() = default;
  Task(const Task&) = delete;
  Task& operator=(const Task&) = delete;

  virtual std::string name() const = 0;
  const Characters& characters() const { return characters_; }
  const Recipe& recipe() const { return recipe_; }
  void set_steps(std::int64_t steps) { recipe_.steps = steps; }
  void set_every(std::int64_t every) { recipe_.every = every; }
  void set_causal(bool causal) { recipe_.model.causal = causal; }  // false: the model can see the answer

  // Depends only on its arguments, so that a resumed run gets the same batches.
  virtual Batch batch(std::uint64_t seed, std::int64_t step) const = 0;
  // On data that is in no training batch.
  virtual Evaluation evaluate(const Transformer& model) const = 0;
  // Further settings, by name, that must match to resume a run: for `text`, a fingerprint of the file.
  virtual std::map<std::string, std::string> settings() const { return {}; }

 private:
  Characters characters_;
  Recipe recipe_;
};

}  // namespace rapt::train
