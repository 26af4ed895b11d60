#include "cli/train/generate.h"

#include <chrono>
#include <cstdio>
#include <functional>
#include <limits>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "cli/files/array_files.h"
#include "cli/terminal/interrupt.h"
#include "cli/terminal/output.h"
#include "cli/train/heads_page.h"
#include "rapt/error.h"
#include "rapt/safetensors.h"
#include "rapt/transformer.h"
#include "train/builtin.h"
#include "train/prompts.h"
#include "train/sampler.h"
#include "train/trainer.h"

namespace rapt::cli {
namespace {

// For the built-in model: short enough to show both heads next to each other.
constexpr const char* kFirstPrompt = "theCATranthe";
constexpr std::int64_t kFirstAnswer = 4;

constexpr std::int64_t kMost = std::numeric_limits<std::int32_t>::max();

struct Generated {
  std::vector<train::Sampled> tokens;
  double seconds = 0.0;
  bool stopped = false;  // by Ctrl-C
};

Generated generate(const Transformer& model, const train::Prompt& prompt, const train::SamplerOptions& sampling,
                   std::int64_t count, const std::function<void(std::int32_t)>& tell) {
  const Interrupt interrupt;
  const auto start = std::chrono::steady_clock::now();
  train::Sampler sampler(model, prompt.tokens, sampling);
  Generated all;
  while (std::ssize(all.tokens) < count && !(all.stopped = interrupt.asked())) {
    all.tokens.push_back(sampler.next());
    tell(all.tokens.back().token);
  }
  all.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return all;
}

// The requested number of tokens, limited by the context unless the model generates open-ended text.
std::int64_t tokens_wanted(const GenerateOptions& options, const train::Prompt& prompt,
                           const TransformerConfig& model) {
  if (!options.tokens) return prompt.answer;
  const std::int64_t room = model.context - std::ssize(prompt.tokens) + 1;
  if (prompt.open_ended || *options.tokens <= room) return *options.tokens;
  fmt::print(stderr, "rapt: {} tokens requested; the context of {} has room for {} after this prompt\n",
             *options.tokens, model.context, room);
  return room;
}

void print_json(const std::string& name, const train::ModelCard& card, const train::Prompt& prompt,
                const Generated& all) {
  nlohmann::ordered_json json = {
      {"schema", 1}, {"model", name}, {"task", card.task}, {"steps", card.steps}, {"prompt", prompt.text}};
  std::string text;
  nlohmann::ordered_json tokens = nlohmann::ordered_json::array();
  for (const train::Sampled& one : all.tokens) {
    text += card.characters[one.token];
    tokens.push_back({{"token", card.characters[one.token]}, {"probability", one.probability}});
  }
  json["text"] = text;
  json["tokens"] = tokens;
  json["seconds"] = all.seconds;
  print(json.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n");
}

}  // namespace

Command add_generate(Command& rapt, GenerateOptions& options) {
  Command command = rapt.below("generate", "Generate text with a model from rapt train");
  command.place_or_none("model", "FILE", "Model file written by rapt train (default: the built-in model)",
                        [&](const std::string& file) { options.model = file; });
  command.one("--prompt", "TEXT", "Prompt (default: an example of the model's task)",
              [&](const std::string& text) { options.prompt = text; });
  command.one("--tokens", "N",
              "Number of characters (default: the length of the task's answer, or 300 for a text model)",
              [&](const std::string& text) { options.tokens = whole_number("--tokens", text, 1, kMost); });
  command.one("--temperature", "T",
              "Sampling temperature; 0 always takes the most likely token (default 0, or 0.8 for a text model)",
              [&](const std::string& text) { options.temperature = real_number("--temperature", text, 0.0, 100.0); });
  command.one("--top-k", "K", "Sample only from the K most likely tokens (default: all)",
              [&](const std::string& text) { options.top_k = whole_number("--top-k", text, 1, kMost); });
  command.one("--seed", "S", "Sampling seed (default 1)", [&](const std::string& text) {
    options.seed =
        static_cast<std::uint64_t>(whole_number("--seed", text, 0, std::numeric_limits<std::int64_t>::max()));
  });
  command.flag("--json", options.json, "Print JSON, with the probability of each token");
  command.choice("--color", options.color, kColors, "When to use colour");
  command.footer(
      "Without a file, the built-in model is used, and the attention of its heads is shown.\n"
      "With a file, the prompt is printed, and then each token as it is generated. If a text exceeds the context, "
      "generation continues from its newer half; other tasks stop after the answer, or at the end of the context.\n"
      "  rapt generate --prompt wordsxyzwor\n"
      "  rapt train text mine.txt && rapt generate text.safetensors");
  return command;
}

ExitCode run_generate(const GenerateOptions& options) {
  const bool builtin = options.model.empty();
  const std::string name = builtin ? "the built-in model" : options.model;
  if (!builtin) require_file("", options.model);
  const SafetensorsFile file =
      builtin ? SafetensorsFile(train::builtin_induction(), name) : SafetensorsFile(options.model);
  const train::ModelCard card = train::model_card(file, name);
  const Transformer model = Transformer::load(file, name);
  if (model.config().vocabulary != card.characters.size()) {
    throw Error(fmt::format("{} is corrupt: it has {} characters for a vocabulary of {}", name, card.characters.size(),
                            model.config().vocabulary));
  }
  const bool as_page = builtin && !options.json;
  std::optional<std::string> text = options.prompt;
  if (builtin && !text) text = kFirstPrompt;
  const train::Prompt prompt = train::prompt_for(card, model.config(), text, options.seed);
  const train::SamplerOptions sampling{
      .temperature = options.temperature.value_or(prompt.temperature), .top_k = options.top_k, .seed = options.seed};
  std::int64_t count = tokens_wanted(options, prompt, model.config());
  if (builtin && !options.prompt && !options.tokens) count = kFirstAnswer;
  if (!options.json && !as_page) print(prompt.text);
  const Generated all = generate(model, prompt, sampling, count, [&](std::int32_t token) {
    if (options.json || as_page) return;
    print(card.characters[token]);
    std::fflush(stdout);
  });
  if (options.json) {
    print_json(name, card, prompt, all);
  } else if (as_page) {
    show_heads({model, card, prompt, all.tokens}, detect_terminal(options.color));
  } else {
    print("\n");
  }
  return all.stopped ? ExitCode::interrupted : ExitCode::good;
}

}  // namespace rapt::cli
