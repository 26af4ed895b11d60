// Prompts for the models of each task.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "rapt/transformer.h"
#include "train/trainer.h"

namespace rapt::train {

struct Prompt {
  std::string text;
  std::vector<std::int32_t> tokens;
  std::int64_t answer = 0;   // number of tokens of the answer
  bool open_ended = false;   // generation may continue beyond the context
  double temperature = 0.0;  // a suitable one for the task
};

// Without `text`, the prompt is an example of the task, selected by `seed`. Throws if the task does not support the
// prompt, and says what would work.
Prompt prompt_for(const ModelCard& card, const TransformerConfig& model, const std::optional<std::string>& text,
                  std::uint64_t seed);

}  // namespace rapt::train
