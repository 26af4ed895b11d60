#include "train/text.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstddef>

#include "rapt/error.h"
#include "train/draw.h"
#include "train/score.h"

namespace rapt::train {

namespace {

constexpr std::int64_t kEvaluatedRows = 32;
constexpr std::int64_t kEvaluatedAtOnce = 8;

// FNV-1a, to distinguish texts; not a cryptographic hash.
std::string fingerprint_of(const std::string& text) {
  std::uint64_t hash = 0xcbf29ce484222325U;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3U;
  std::array<char, 16> words{};
  return {words.data(), std::to_chars(words.data(), words.data() + words.size(), hash, 16).ptr};
}

// For each row, `context` tokens from its start position, and the tokens that follow them.
Batch windows(const std::vector<std::int32_t>& tokens, const std::vector<std::int64_t>& starts, std::int64_t context) {
  Batch batch{.tokens = {}, .targets = {}, .rows = std::ssize(starts)};
  for (const std::int64_t start : starts) {
    const auto first = tokens.begin() + start;
    batch.tokens.insert(batch.tokens.end(), first, first + context);
    batch.targets.insert(batch.targets.end(), first + 1, first + context + 1);
  }
  return batch;
}

}  // namespace

Recipe Text::standard_recipe() {
  return {.model = {.context = 128, .width = 128, .layers = 2, .heads = 4, .hidden = 512},
          .batch = 16,
          .rate = 0.002,
          .weight_decay = 0.01,
          .warm_up = 100,
          .every = 50,
          .steps = 1000};
}

Text::Text(const std::string& text, const std::string& name, const Recipe& recipe)
    : Text(code_points(text, name), text, name, recipe) {}

Text::Text(const std::u32string& points, const std::string& text, const std::string& name, const Recipe& recipe)
    : Task(Characters::of(points), recipe), fingerprint_(fingerprint_of(text)) {
  const std::vector<std::int32_t> tokens = characters().encode(points);
  const std::int64_t count = std::ssize(tokens), held_out = count / 10, context = recipe.model.context;
  if (held_out < context + 1) {
    throw Error(name + " has " + std::to_string(count) +
                " characters, and a tenth of them is kept for validation; a context of " + std::to_string(context) +
                " needs " + std::to_string(10 * (context + 1)) +
                (held_out > 1 ? ": give a longer text, or a context of at most " + std::to_string(held_out - 1)
                              : ": give a longer text"));
  }
  trained_.assign(tokens.begin(), tokens.end() - held_out);
  held_out_.assign(tokens.end() - held_out, tokens.end());
}

Batch Text::batch(std::uint64_t seed, std::int64_t step) const {
  Draw draw(seed, Stream::training, step);
  const std::int64_t context = recipe().model.context;
  std::vector<std::int64_t> starts;
  for (std::int64_t row = 0; row < recipe().batch; ++row) starts.push_back(draw.below(std::ssize(trained_) - context));
  return windows(trained_, starts, context);
}

Evaluation Text::evaluate(const Transformer& model) const {
  const std::int64_t context = recipe().model.context;
  const std::int64_t places = std::ssize(held_out_) - context;
  const std::int64_t rows = std::min(kEvaluatedRows, places);
  Score score;
  for (std::int64_t row = 0; row < rows; row += kEvaluatedAtOnce) {
    std::vector<std::int64_t> starts;  // spread evenly
    for (std::int64_t n = row; n < std::min(rows, row + kEvaluatedAtOnce); ++n) starts.push_back(n * places / rows);
    const Batch batch = windows(held_out_, starts, context);
    score.add(batch, model.logits(batch.tokens, batch.rows));
  }
  return {score.mean_loss(), {{"accuracy", "accuracy on the held-out characters", score.accuracy(), {}}}};
}

}  // namespace rapt::train
