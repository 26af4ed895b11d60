// The page that people meet first: a trained model goes on with what was repeated, and shows how.
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
