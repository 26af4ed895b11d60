// A model and what it computed for a text.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cli/show/show.h"
#include "models/files.h"
#include "models/generation.h"
#include "models/heads.h"
#include "models/model.h"
#include "models/tokenizer.h"

namespace rapt::cli {

// The tokens that a model takes for likely at one position.
struct Prediction {
  std::size_t position = 0;  // of the token that was read: the last one, or a [MASK]
  Tensor logits;             // (V)
  std::vector<models::Likely> likely;
};

// The members are filled as far as the options ask for them.
struct Reading {
  explicit Reading(const ShowOptions& options);

  const ShowOptions& options;
  models::ModelFiles files;
  models::Model model;  // before the tokenizer: of what cannot be read, the kind of the model is the first reason
  models::Tokenizer tokenizer;
  std::string text;
  std::vector<models::Token> tokens;
  std::vector<std::string> names;  // of the tokens, for labels
  models::Run run;
  std::vector<models::HeadSummary> heads;  // layer after layer
  std::optional<models::Run> whole;        // the run without switched-off heads
  std::vector<Prediction> predictions, whole_predictions;
  std::vector<models::Likely> generated;

  bool is_off(std::int64_t layer, std::int64_t head) const;
  const models::HeadSummary& summary(std::int64_t layer, std::int64_t head) const;
  std::string name_of(std::int32_t token) const;

 private:
  std::vector<Prediction> predictions_of(const models::Run& from) const;
  void generate();
};

// A token's text in one line of a terminal: without spaces at its ends and without control characters.
std::string label_of(const std::string& text);

// |a − b| / |b| of two rows of the last hidden state.
double relative_change(const ConstTensorView& a, const ConstTensorView& b);

}  // namespace rapt::cli
