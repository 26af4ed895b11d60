#include "train/reverse.h"

#include <cstddef>
#include <vector>

#include "train/draw.h"
#include "train/score.h"

namespace rapt::train {

namespace {

constexpr std::int64_t kAlphabet = 26, kEvaluated = 128;
constexpr std::int64_t kLength = 2 * Reverse::kLetters;  // the last letter is only a target

Batch batch_of(Draw draw, std::int64_t rows) {
  constexpr auto kCount = static_cast<std::size_t>(Reverse::kLetters);
  Batch batch{.tokens = {}, .targets = {}, .rows = rows};
  for (std::int64_t row = 0; row < rows; ++row) {
    std::vector<std::int32_t> all;
    for (std::size_t n = 0; n < kCount; ++n) all.push_back(static_cast<std::int32_t>(draw.below(kAlphabet)));
    all.push_back(kAlphabet);  // the bar
    for (std::size_t n = kCount; n-- > 0;) all.push_back(all[n]);
    batch.tokens.insert(batch.tokens.end(), all.begin(), all.end() - 1);
    batch.targets.insert(batch.targets.end(), kCount, kNoTarget);
    batch.targets.insert(batch.targets.end(), all.begin() + Reverse::kLetters + 1, all.end());
  }
  return batch;
}

}  // namespace

Reverse::Reverse()
    : Task(Characters(std::string("abcdefghijklmnopqrstuvwxyz") + kBar),
           {.model = {.context = kLength, .width = 64, .layers = 1, .heads = 1}, .rate = 0.01, .warm_up = 20}) {}

Batch Reverse::batch(std::uint64_t seed, std::int64_t step) const {
  return batch_of(Draw(seed, Stream::training, step), recipe().batch);
}

Evaluation Reverse::evaluate(const Transformer& model) const {
  const Batch batch = batch_of(Draw(0, Stream::evaluation, 0), kEvaluated);
  std::vector<Tensor> weights;
  Score score;
  score.add(batch, model.logits(batch.tokens, batch.rows, &weights));
  double on_mirror = 0.0;
  for (std::int64_t row = 0; row < kEvaluated; ++row) {
    for (std::int64_t n = 0; n < kLetters; ++n) {  // position kLetters + n predicts letter kLetters − 1 − n
      const std::int64_t place = (row * kLength + kLetters + n) * kLength + kLetters - 1 - n;
      on_mirror += double{weights[0].values<float>()[static_cast<std::size_t>(place)]};
    }
  }
  return {score.mean_loss(),
          {{"accuracy", "accuracy on the reversed letters", score.accuracy(), 0.99},
           {"mirror", "the weight on the letter that comes next", on_mirror / (kEvaluated * kLetters)}}};
}

}  // namespace rapt::train
