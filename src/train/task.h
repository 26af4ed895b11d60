// What a small model can be trained for: where its batches come from, and how well it does.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "rapt/transformer.h"
#include "train/characters.h"

namespace rapt::train {

// (B, L), and the token that should follow each, kNoTarget where nobody can know.
struct Batch {
  std::vector<std::int32_t> tokens, targets;
  std::int64_t rows = 0;
};

// How a task is trained: the model, the steps and the optimizer. The rate rises evenly in the first `warm_up` steps.
struct Recipe {
  TransformerConfig model{};
  std::int64_t batch = 32;
  double rate = 0.003;
  double beta2 = 0.99;
  double weight_decay = 0.0;
  double clip = 1.0;
  std::int64_t warm_up = 50;
  std::int64_t every = 50;    // steps from one evaluation to the next
  std::int64_t steps = 2000;  // at most
};

// One number that says how well a model does.
struct Measure {
  std::string key;    // "accuracy"
  std::string words;  // "of the letters are right", said after a percentage
  double value = 0.0;
  std::optional<double> goal{};  // training ends when every measure that has one is at least there

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
  void set_causal(bool causal) { recipe_.model.causal = causal; }  // false: the model may look at what it should say

  // A pure function of its arguments: what was interrupted can go on with the batches it would have had.
  virtual Batch batch(std::uint64_t seed, std::int64_t step) const = 0;
  // On data that no batch holds.
  virtual Evaluation evaluate(const Transformer& model) const = 0;
  // What else must be the same for a run to go on, by what it is called: of `text`, the file.
  virtual std::map<std::string, std::string> settings() const { return {}; }

 private:
  Characters characters_;
  Recipe recipe_;
};

}  // namespace rapt::train
