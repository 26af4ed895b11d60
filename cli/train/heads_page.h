// The first page a new user sees: a trained model continues a repeated pattern, and shows how.
#pragma once

#include <vector>

#include "cli/terminal/terminal.h"
#include "rapt/transformer.h"
#include "train/prompts.h"
#include "train/sampler.h"

namespace rapt::cli {

struct HeadsPage {
  const Transformer& model;  // of the induction task
  const train::ModelCard& card;
  const train::Prompt& prompt;
  const std::vector<train::Sampled>& answer;
};

void show_heads(const HeadsPage& shown, const Terminal& terminal);

}  // namespace rapt::cli
