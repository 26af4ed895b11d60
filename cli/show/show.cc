#include "cli/show/show.h"

#include <array>
#include <limits>

#include "cli/show/pages.h"
#include "cli/show/reading.h"
#include "cli/terminal/output.h"
#include "cli/terminal/page.h"

namespace rapt::cli {
namespace {

constexpr std::array<std::pair<std::string_view, exhibits::Lang>, 2> kLanguages{
    {{"en", exhibits::Lang::en}, {"zh", exhibits::Lang::zh}}};

// "5.11,5.2": layers and heads.
std::vector<models::HeadPlace> places_of(const std::string& text) {
  std::vector<models::HeadPlace> places;
  for (const std::string& each : split(text)) {
    const std::vector<std::string> parts = split(each, '.');
    if (parts.size() != 2) throw BadValue("--off", "'" + each + "' is not a layer and a head, such as 5.11");
    places.push_back({whole_number("--off", parts[0], 0, kMostWhole), whole_number("--off", parts[1], 0, kMostWhole)});
  }
  return places;
}

ExitCode show_page(const Reading& reading) {
  const ShowOptions& options = reading.options;
  const Terminal terminal = detect_terminal(options.color);
  Page page(terminal);
  show_reading_title(page, reading);
  if (options.head) {
    show_head(page, reading);
  } else if (options.layer) {
    show_layer(page, reading);
  }
  if (options.token) show_token(page, reading);
  if (!options.off.empty()) show_change(page, reading);
  if (options.next) show_next(page, reading);
  if (options.generate) show_generated(page, reading);
  const bool special = options.layer || options.token || options.next || options.generate || !options.off.empty();
  if (!special) show_overview(page, reading);
  page.flush();
  return ExitCode::good;
}

}  // namespace

Command add_show(Command& rapt, ShowOptions& options) {
  Command command = rapt.below("show", "Show what every head of a trained model attends to in a sentence");
  command.place("model", "FILE", "A folder with config.json, a tokenizer and safetensors files, or one of those files",
                [&](const std::string& file) { options.model = file; });
  command.place_or_none("sentence", "TEXT", "The sentence (default: an example)",
                        [&](const std::string& text) { options.text = text; });
  command.one("--layer", "N", "The heads of one layer, from 0, in words",
              [&](const std::string& text) { options.layer = whole_number("--layer", text, 0, kMostWhole); });
  command.one("--head", "N", "With --layer: the map of one head, from 0",
              [&](const std::string& text) { options.head = whole_number("--head", text, 0, kMostWhole); });
  command.one("--token", "WORD", "What a word of the sentence attends to, in every head",
              [&](const std::string& text) { options.token = text; });
  command.one("--off", "L.H,L.H", "Switch heads off, given as layer.head, and show how much the output changes",
              [&](const std::string& text) { options.off = places_of(text); });
  command.flag("--next", options.next, "The most likely next tokens, or the most likely tokens at each [MASK]");
  command.one("--generate", "N", "Continue the sentence by N tokens (GPT-2)",
              [&](const std::string& text) { options.generate = whole_number("--generate", text, 1, kMostWhole); });
  command.one("--temperature", "T",
              "Temperature of --next (default 1) and --generate (default 0: always the most likely token)",
              [&](const std::string& text) { options.temperature = real_number("--temperature", text, 0.0, 100.0); });
  command.one("--seed", "S", "Sampling seed of --generate (default 1)", [&](const std::string& text) {
    options.seed =
        static_cast<std::uint64_t>(whole_number("--seed", text, 0, std::numeric_limits<std::int64_t>::max()));
  });
  command.flag("--json", options.json, "Print JSON, with every weight and hidden state");
  command.choice("--lang", options.lang, kLanguages, "Language");
  command.choice("--color", options.color, kColors, "When to use colour");
  command.footer(
      "Models: BERT, MiniLM, DistilBERT, RoBERTa and GPT-2, as Hugging Face stores them.\n"
      "  rapt show all-MiniLM-L6-v2 \"The animal didn't cross the street because it was too tired.\"\n"
      "  rapt show all-MiniLM-L6-v2 --layer 5 --head 11\n"
      "  rapt show gpt2 \"The capital of France is\" --next --generate 10");
  return command;
}

ExitCode run_show(const ShowOptions& options) {
  const Reading reading(options);
  if (!options.json) return show_page(reading);
  print(reading_json(reading));
  return ExitCode::good;
}

}  // namespace rapt::cli
