#include "cli/train/heads_page.h"

#include <algorithm>
#include <cstddef>
#include <set>
#include <string>

#include <fmt/format.h>

#include "cli/terminal/page.h"
#include "cli/terminal/pictures.h"
#include "cli/terminal/text.h"

namespace rapt::cli {
namespace {

constexpr int kGap = 4;

std::string filled(std::string_view mark, int times) {
  std::string text;
  for (int n = 0; n < times; ++n) text += mark;
  return text;
}

// Row i: what token i attends to.
Block map_of(const Terminal& terminal, const std::string& title, const std::vector<std::string>& names,
             const ConstTensorView& weights, int cell) {
  const auto count = static_cast<std::int64_t>(names.size());
  Block block{.lines = {}, .width = 2 + cell * static_cast<int>(count)};
  block.width = std::max(block.width, columns(title));
  block.lines.push_back(terminal.bold(pad_right(title, block.width)));
  std::string header = "  ";
  for (const std::string& name : names) header += pad_right(name, cell);
  block.lines.push_back(terminal.dim(pad_right(header, block.width)));
  for (std::int64_t i = 0; i < count; ++i) {
    std::string line = names[static_cast<std::size_t>(i)] + " ";
    for (std::int64_t j = 0; j <= i; ++j) line += shade(terminal, weights.at<float>(i, j), cell);
    const int used = 2 + cell * static_cast<int>(i + 1);
    block.lines.push_back(line + filled(" ", block.width - used));
  }
  return block;
}

// Earlier occurrences of a token: what followed them is the expected next token.
struct Repeats {
  std::int64_t count = 0;
  double on_match = 0.0;     // layer 2's weight on what followed, averaged over repeated tokens
  double on_previous = 0.0;  // layer 1's weight on the previous token, at the positions where layer 2 should attend
};

Repeats repeats_in(const std::vector<std::int32_t>& tokens, const ConstTensorView& first,
                   const ConstTensorView& second) {
  Repeats found;
  for (std::size_t i = 1; i < tokens.size(); ++i) {
    const auto before = std::find(tokens.begin(), tokens.begin() + static_cast<std::ptrdiff_t>(i), tokens[i]);
    const auto match = before - tokens.begin() + 1;
    if (match > static_cast<std::ptrdiff_t>(i)) continue;
    ++found.count;
    found.on_match += double{second.at<float>(static_cast<std::int64_t>(i), match)};
    found.on_previous += double{first.at<float>(match, match - 1)};
  }
  if (found.count > 0) {
    found.on_match /= static_cast<double>(found.count);
    found.on_previous /= static_cast<double>(found.count);
  }
  return found;
}

std::string percent(double fraction) { return fmt::format("{:.0f}%", 100.0 * fraction); }

}  // namespace

void show_heads(const HeadsPage& shown, const Terminal& terminal) {
  std::vector<std::int32_t> tokens = shown.prompt.tokens;
  std::string answer, chances;
  for (const train::Sampled& one : shown.answer) {
    if (std::ssize(tokens) < shown.model.config().context) tokens.push_back(one.token);
    answer += shown.card.characters[one.token];
    chances +=
        fmt::format("{}{} {}", chances.empty() ? "" : ", ", shown.card.characters[one.token], percent(one.probability));
  }
  std::vector<std::string> names;
  for (const std::int32_t token : tokens) names.push_back(shown.card.characters[token]);
  std::vector<Tensor> weights;
  (void)shown.model.logits(tokens, 1, &weights);
  const ConstTensorView first = weights.front().view().select(0, 0).select(0, 0);
  const ConstTensorView second = weights.back().view().select(0, 0).select(0, 0);
  const Repeats repeats = repeats_in(tokens, first, second);

  Page page(terminal);
  page.heading("an induction head", "2 layers with 1 head each, trained in seconds");
  page.line(shown.prompt.text + " " + terminal.bold(answer));
  const std::set<std::int32_t> different(shown.prompt.tokens.begin(), shown.prompt.tokens.end());
  const bool repeats_something = different.size() < shown.prompt.tokens.size();
  page.quiet((repeats_something ? "The model continues with what it has seen before: " : "The model guesses: ") +
             chances + ".");
  page.line();
  const int both = 2 * (2 + 2 * static_cast<int>(names.size())) + kGap;
  const int cell = both <= page.room() ? 2 : 1;
  page.lines(arrange({map_of(terminal, "layer 1: the previous token", names, first, cell),
                      map_of(terminal, "layer 2: what came next last time", names, second, cell)},
                     page.room(), kGap));
  page.line();
  page.quiet(fmt::format("Each row shows what one token attends to; {} is a weight of 1.",
                         terminal.has_color() ? "bright" : "█"));
  if (!repeats_something) {
    page.prose(
        "The prompt repeats nothing, so the next token cannot be predicted. Try a prompt that starts to repeat "
        "itself.");
  } else {
    page.prose(
        fmt::format("In layer 1, each token attends to the one before it ({} of the weight, at the positions where "
                    "layer 2 looks). Layer 2 can therefore find the token that followed the current one last time ({} "
                    "of its weight), and predicts it again.",
                    percent(repeats.on_previous), percent(repeats.on_match)));
  }
  page.heading("next", "");
  page.line("rapt generate --prompt wordsxyzwor   your own prompt: letters, digits, + and /");
  page.line("rapt train induction                 watch a model learn this");
  page.line("rapt explain                         how attention works, step by step");
  page.line("rapt run --help                      attention on arrays of your own");
  page.flush();
}

}  // namespace rapt::cli
