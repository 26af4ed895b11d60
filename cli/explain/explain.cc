#include "cli/explain/explain.h"

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <system_error>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "cli/command.h"
#include "cli/explain/exhibit_page.h"
#include "cli/explain/views.h"
#include "cli/terminal/page.h"
#include "exhibits/exhibit.h"
#include "exhibits/tokens.h"
#include "exhibits/toy_model.h"
#include "exhibits/walk.h"
#include "exhibits/walk_json.h"
#include "exhibits/wrong_split.h"
#include "rapt/error.h"

namespace rapt::cli {
namespace {

using exhibits::split_wrongly;
using exhibits::take_walk;
using exhibits::tokenize;

constexpr std::array<std::pair<std::string_view, Lang>, 2> kLanguages{{{"en", Lang::en}, {"zh", Lang::zh}}};

// Several tensors hold scores for every pair of tokens and every head: this limit keeps them under a gigabyte.
constexpr std::int64_t kMostTokens = 1024;

std::string working_heads() {
  std::string list;
  for (std::int64_t n = 1; n <= kEmbedding; ++n) {
    if (kEmbedding % n == 0) list += fmt::format("{}{}", list.empty() ? "" : ", ", n);
  }
  return list;
}

// Any integer; its range is checked later.
std::int64_t any_whole(const std::string& option, const std::string& text) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error == std::errc() && end == text.data() + text.size()) return value;
  throw BadValue(option, text + " is not an integer");
}

void add_setting(exhibits::Settings& settings, const std::string& text) {
  const std::size_t at = text.find('=');
  if (at == std::string::npos || at == 0) throw BadValue("--set", "'" + text + "' is not key=value");
  if (!settings.emplace(text.substr(0, at), text.substr(at + 1)).second) {
    throw BadValue("--set", "'" + text.substr(0, at) + "' is given twice");
  }
}

void write(const std::string& text) { std::fwrite(text.data(), 1, text.size(), stdout); }

// The exhibits validate the number and the settings of a question.
ExitCode answer(const ExplainOptions& options) {
  if (options.questions) {
    const std::vector<exhibits::Exhibit> all = exhibits::questions(options.lang);
    if (options.json) return write(exhibits::as_json(all) + "\n"), ExitCode::good;
    const Terminal terminal = detect_terminal(options.color);
    Page page(terminal);
    show_questions(page, all, options.lang);
    return page.flush(), ExitCode::good;
  }
  const exhibits::Exhibit exhibit = [&] {
    try {
      const auto number = std::clamp<std::int64_t>(*options.question, -1, kMostWhole);
      return exhibits::exhibit(static_cast<int>(number), options.lang, options.settings);
    } catch (const Error& error) {
      throw UsageError(std::string("explain: ") + error.what());
    }
  }();
  if (options.json) return write(exhibits::as_json(exhibit) + "\n"), ExitCode::good;
  const Terminal terminal = detect_terminal(options.color);
  Page page(terminal);
  show_exhibit(page, exhibit, options.lang);
  return page.flush(), ExitCode::good;
}

// Rejects options that cannot be combined with a question, which has its own sentence and settings.
void check_question(const ExplainOptions& options) {
  const auto refuse = [](const std::string& what) { throw UsageError("explain: " + what); };
  if (options.questions && options.question) refuse("--questions and --question cannot be combined");
  if (!options.settings.empty() && !options.question) refuse("--set requires --question N");
  if (!options.question && !options.questions) return;
  const std::string name = options.question ? "--question" : "--questions";
  for (const auto& [given, option] :
       {std::pair(options.text.has_value(), "--text"), std::pair(options.heads.has_value(), "--heads"),
        std::pair(options.causal, "--causal"), std::pair(options.wrong_split, "--wrong-split")}) {
    if (given)
      refuse(std::string(option) + " cannot be combined with " + name +
             ": a question has its own settings, changed with --set");
  }
}

Sentence checked_sentence(const ExplainOptions& options, std::int64_t heads, const Words& words) {
  if (heads < 1) throw UsageError(say(words.error_heads, heads));
  if (kEmbedding % heads != 0) {
    throw UsageError(say(words.error_divide, heads, kEmbedding,
                         static_cast<double>(kEmbedding) / static_cast<double>(heads), working_heads()));
  }
  Sentence sentence = tokenize(options.text.has_value() ? std::string_view(*options.text) : words.sentence);
  if (sentence.tokens.empty()) throw UsageError(std::string(words.error_empty));
  if (sentence.length() > kMostTokens) throw UsageError(say(words.error_long, sentence.length(), kMostTokens));
  return sentence;
}

}  // namespace

Command add_explain(Command& rapt, ExplainOptions& options) {
  Command command =
      rapt.below("explain", "Explain multi-head attention on a sentence, step by step, or answer a common question");
  command.one("--text", "TEXT", "The sentence (default: a built-in example)",
              [&](const std::string& text) { options.text = text; });
  command.one("--heads", "N", "Number of heads (default 4); must divide 24",
              [&](const std::string& text) { options.heads = any_whole("--heads", text); });
  command.flag("--causal", options.causal, "Causal mask: each word sees only itself and earlier words");
  command.flag("--wrong-split", options.wrong_split, "Split heads with view(B, H, L, D), and show what breaks");
  command.flag("--questions", options.questions, "List the common questions, with their numbers");
  command.one("--question", "N", "Answer question N, with numbers computed live",
              [&](const std::string& text) { options.question = any_whole("--question", text); });
  command.many("--set", "KEY=VALUE", "Change a setting of the question; can be repeated",
               [&](const std::vector<std::string>& texts) {
                 for (const std::string& text : texts) add_setting(options.settings, text);
               });
  command.flag("--json", options.json, "Print the result as JSON");
  command.choice("--lang", options.lang, kLanguages, "Language");
  command.choice("--color", options.color, kColors, "When to use colour");
  return command;
}

ExitCode run_explain(const ExplainOptions& options) {
  const Words& words = rapt::cli::words(options.lang);
  check_question(options);
  if (options.question || options.questions) return answer(options);
  const std::int64_t heads = options.heads.value_or(exhibits::kDefaultHeads);
  const Walk walk = take_walk(checked_sentence(options, heads, words), heads, options.causal);

  if (options.json) {
    nlohmann::ordered_json data = exhibits::walk_as_json(walk);
    if (options.wrong_split) data["wrong_split"] = exhibits::wrong_split_as_json(walk, split_wrongly(walk));
    write(data.dump() + "\n");
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
