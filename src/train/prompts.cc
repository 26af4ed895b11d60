#include "train/prompts.h"

#include <algorithm>
#include <cstddef>
#include <span>

#include "rapt/error.h"
#include "train/dates.h"
#include "train/draw.h"
#include "train/induction.h"
#include "train/reverse.h"

namespace rapt::train {

namespace {

constexpr std::int64_t kShown = 3;  // tokens of the repeated block that the prompt contains
constexpr std::int64_t kCharacters = 300;

std::string example(const ModelCard& card, std::uint64_t seed) {
  Draw draw(seed, Stream::sampling, 1);
  if (card.task == "induction") {
    const Induction::Row row = Induction::row(draw);
    return card.characters.decode(
        std::span(row.tokens).first(static_cast<std::size_t>(row.block + row.distance + kShown)));
  }
  if (card.task == "reverse") {
    std::string letters;
    for (std::int64_t n = 0; n < Reverse::kLetters; ++n) letters += static_cast<char>('a' + draw.below(26));
    return letters;
  }
  if (card.task == "dates") {
    const Date date = Dates::date(draw, /*held_out=*/true);
    return Dates::written(date, static_cast<int>(draw.below(Dates::kForms))).text;
  }
  return card.characters.contains(U'\n') ? "\n" : card.characters[0];
}

// The number of tokens left in the block that the prompt has begun to repeat.
std::int64_t rest_of_block(const std::vector<std::int32_t>& tokens) {
  const auto first = std::find(tokens.begin(), tokens.end() - 1, tokens.back());
  const std::int64_t distance = tokens.end() - 1 - first;
  std::int64_t run = 0;
  while (run < distance && run <= first - tokens.begin() && *(first - run) == *(tokens.end() - 1 - run)) ++run;
  return std::max<std::int64_t>(1, std::min(distance, Induction::kBlock) - run);
}

// `text` with `mark` at its end, added unless it is already there.
std::string ended(std::string text, char mark) {
  if (!text.ends_with(mark)) text += mark;
  return text;
}

}  // namespace

Prompt prompt_for(const ModelCard& card, const TransformerConfig& model, const std::optional<std::string>& text,
                  std::uint64_t seed) {
  if (text && text->empty()) throw Error("the prompt is empty; give at least one character, or omit it");
  Prompt prompt{.text = text ? *text : example(card, seed), .tokens = {}};
  if (card.task == "reverse") prompt.text = ended(prompt.text, Reverse::kBar);
  if (card.task == "dates") prompt.text = ended(prompt.text, Dates::kEquals);
  prompt.tokens = card.characters.encode(prompt.text);
  const std::int64_t length = std::ssize(prompt.tokens);
  if (card.task == "text") {
    prompt.answer = kCharacters, prompt.open_ended = true, prompt.temperature = 0.8;
    return prompt;
  }
  if (card.task == "reverse" && length != Reverse::kLetters + 1) {
    throw Error("the prompt has " + std::to_string(length - 1) + " letters; this model reverses exactly " +
                std::to_string(Reverse::kLetters));
  }
  if (length > model.context) {
    throw Error("the prompt has " + std::to_string(length) + " characters; the context of this model is " +
                std::to_string(model.context));
  }
  prompt.answer = card.task == "reverse" ? Reverse::kLetters
                  : card.task == "dates" ? Dates::kAnswer
                                         : rest_of_block(prompt.tokens);
  // The last token is generated but never read, so it needs no room in the context.
  prompt.answer = std::min(prompt.answer, model.context - length + 1);
  return prompt;
}

}  // namespace rapt::train
