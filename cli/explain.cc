#include "explain.h"

#include <charconv>
#include <cstdio>
#include <system_error>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "command.h"
#include "exhibits/tokens.h"
#include "exhibits/toy_model.h"
#include "exhibits/walk.h"
#include "exhibits/walk_json.h"
#include "exhibits/wrong_split.h"
#include "page.h"
#include "views.h"

namespace rapt::cli {
namespace {

using exhibits::split_wrongly;
using exhibits::take_walk;
using exhibits::tokenize;

constexpr std::array<std::pair<std::string_view, Lang>, 2> kLanguages{{{"en", Lang::en}, {"zh", Lang::zh}}};

// Scores are kept for every pair of tokens and every head, several times over: this keeps them under a gigabyte.
constexpr std::int64_t kMostTokens = 1024;

std::string working_heads() {
  std::string list;
  for (std::int64_t n = 1; n <= kEmbedding; ++n) {
    if (kEmbedding % n == 0) list += fmt::format("{}{}", list.empty() ? "" : ", ", n);
  }
  return list;
}

// Any whole number: which of them make sense is said in the language that was asked for.
std::int64_t heads_of(const std::string& text) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error == std::errc() && end == text.data() + text.size()) return value;
  throw BadValue("--heads", text + " is not a whole number");
}

Sentence checked_sentence(const ExplainOptions& options, const Words& words) {
  if (options.heads < 1) throw UsageError(say(words.error_heads, options.heads));
  if (kEmbedding % options.heads != 0) {
    throw UsageError(say(words.error_divide, options.heads, kEmbedding,
                         static_cast<double>(kEmbedding) / static_cast<double>(options.heads), working_heads()));
  }
  Sentence sentence = tokenize(options.text.has_value() ? std::string_view(*options.text) : words.sentence);
  if (sentence.tokens.empty()) throw UsageError(std::string(words.error_empty));
  if (sentence.length() > kMostTokens) throw UsageError(say(words.error_long, sentence.length(), kMostTokens));
  return sentence;
}

}  // namespace

Command add_explain(Command& rapt, ExplainOptions& options) {
  Command command = rapt.below("explain", "Walk a sentence through multi-head attention, step by step");
  command.one("--text", "TEXT", "The sentence (a built-in one unless given)",
              [&](const std::string& text) { options.text = text; });
  command.one("--heads", "N", "Number of heads (default 4); must divide 24",
              [&](const std::string& text) { options.heads = heads_of(text); });
  command.flag("--causal", options.causal, "Let each word see only itself and the words before it");
  command.flag("--wrong-split", options.wrong_split, "Split with view(B, H, L, D) and show what breaks");
  command.flag("--json", options.json, "Print the same as data");
  command.choice("--lang", options.lang, kLanguages, "Language");
  command.choice("--color", options.color, kColors, "When to colour");
  return command;
}

ExitCode run_explain(const ExplainOptions& options) {
  const Words& words = rapt::cli::words(options.lang);
  const Walk walk = take_walk(checked_sentence(options, words), options.heads, options.causal);

  if (options.json) {
    nlohmann::ordered_json data = exhibits::walk_as_json(walk);
    if (options.wrong_split) data["wrong_split"] = exhibits::wrong_split_as_json(walk, split_wrongly(walk));
    const std::string text = data.dump() + "\n";
    std::fwrite(text.data(), 1, text.size(), stdout);
  } else {
    const Terminal terminal = detect_terminal(options.color);
    Page page(terminal);
    if (options.wrong_split) {
      show_wrong_split(page, walk, split_wrongly(walk), words);
    } else {
      show_walk(page, walk, words);
    }
    page.flush();
  }
  return walk.good() ? ExitCode::good : ExitCode::numbers_differ;
}

}  // namespace rapt::cli
