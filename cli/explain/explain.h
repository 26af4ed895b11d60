// `rapt explain`: multi-head attention on a sentence, step by step, or the answer to a question.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "cli/exit_code.h"
#include "cli/explain/words.h"
#include "cli/terminal/terminal.h"
#include "exhibits/exhibit.h"
#include "exhibits/toy_model.h"

namespace rapt::cli {

class Command;

struct ExplainOptions {
  std::optional<std::string> text;    // absent: the built-in sentence
  std::optional<std::int64_t> heads;  // absent: exhibits::kDefaultHeads
  bool causal = false;
  bool wrong_split = false;
  bool questions = false;                // list them
  std::optional<std::int64_t> question;  // answer this one
  exhibits::Settings settings;           // of the question's switches
  bool json = false;
  Lang lang = Lang::en;
  ColorChoice color = ColorChoice::automatic;
};

Command add_explain(Command& rapt, ExplainOptions& options);
ExitCode run_explain(const ExplainOptions& options);

}  // namespace rapt::cli
