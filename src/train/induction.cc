#include "train/induction.h"

#include <algorithm>
#include <cstddef>
#include <numeric>

#include "train/score.h"

namespace rapt::train {

namespace {

constexpr std::string_view kTokens = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
constexpr std::int64_t kEvaluated = 128;

Batch batch_of(const std::vector<Induction::Row>& rows) {
  Batch batch{.tokens = {}, .targets = {}, .rows = std::ssize(rows)};
  for (const Induction::Row& row : rows) {
    const std::size_t first = batch.targets.size();
    batch.tokens.insert(batch.tokens.end(), row.tokens.begin(), row.tokens.end());
    batch.targets.resize(first + row.tokens.size(), kNoTarget);
    // The first token of the repeat cannot be predicted; the others can.
    for (std::int64_t i = 1; i < Induction::kBlock; ++i) {
      const auto at = static_cast<std::size_t>(row.block + row.distance + i);
      batch.targets[first + at - 1] = row.tokens[at];
    }
  }
  return batch;
}

std::vector<Induction::Row> rows_of(Draw draw, std::int64_t count) {
  std::vector<Induction::Row> rows;
  for (std::int64_t n = 0; n < count; ++n) rows.push_back(Induction::row(draw));
  return rows;
}

}  // namespace

Induction::Induction()
    : Task(Characters(kTokens), {.model = {.context = kLength, .width = 64, .layers = 2, .heads = 1},
                                 // Without a small beta2 and strong weight decay, some seeds spend a thousand steps
                                 // on a positional guess, which is sometimes right.
                                 .beta2 = 0.95,
                                 .weight_decay = 0.3}) {}

Induction::Row Induction::row(Draw& draw) {
  // All tokens but those of the block are distinct; otherwise several positions could match.
  std::vector<std::int32_t> tokens(kTokens.size());
  std::iota(tokens.begin(), tokens.end(), 0);
  for (std::int64_t n = 0; n < kLength; ++n) {
    std::swap(tokens[static_cast<std::size_t>(n)],
              tokens[static_cast<std::size_t>(n + draw.below(std::ssize(tokens) - n))]);
  }
  tokens.resize(kLength);
  Row row{.tokens = std::move(tokens), .block = draw.below(kLength - 2 * kBlock + 1)};
  row.distance = kBlock + draw.below(kLength - 2 * kBlock - row.block + 1);
  const auto first = row.tokens.begin() + row.block;
  std::copy(first, first + kBlock, first + row.distance);
  return row;
}

Batch Induction::batch(std::uint64_t seed, std::int64_t step) const {
  return batch_of(rows_of(Draw(seed, Stream::training, step), recipe().batch));
}

Evaluation Induction::evaluate(const Transformer& model) const {
  const std::vector<Row> rows = rows_of(Draw(0, Stream::evaluation, 0), kEvaluated);
  const Batch batch = batch_of(rows);
  std::vector<Tensor> weights;
  Score score;
  score.add(batch, model.logits(batch.tokens, batch.rows, &weights));
  const auto weight = [&](std::size_t layer, std::size_t row, std::int64_t query, std::int64_t key) {
    const auto place = (static_cast<std::int64_t>(row) * kLength + query) * kLength + key;
    return double{weights[layer].values<float>()[static_cast<std::size_t>(place)]};
  };
  double on_previous = 0.0, on_previous_of_match = 0.0, on_match = 0.0;
  for (std::size_t n = 0; n < rows.size(); ++n) {
    for (std::int64_t i = 1; i < kLength; ++i) on_previous += weight(0, n, i, i - 1) / (kLength - 1);
    for (std::int64_t i = 1; i < kBlock; ++i) {
      // The query is token i − 1 of the repeat; at its first occurrence it was followed by the token at `match`. From
      // `match`, layer 1 must attend to the previous token, or layer 2 could not find the match. The last tokens of a
      // row are never a match, so layer 1 is not trained to attend to the previous token from there, and its mean over
      // all tokens is lower.
      const std::int64_t match = rows[n].block + i;
      on_match += weight(1, n, match + rows[n].distance - 1, match) / (kBlock - 1);
      on_previous_of_match += weight(0, n, match, match - 1) / (kBlock - 1);
    }
  }
  const auto count = static_cast<double>(rows.size());
  return {score.mean_loss(),
          {{"accuracy", "accuracy on the tokens of a repeat", score.accuracy(), 0.99},
           {"match", "layer 2's weight on the token after the match", on_match / count, 0.9},
           {"previous", "layer 1's weight on the previous token", on_previous / count, 0.6},
           {"previous_of_match", "the same, at the positions where layer 2 looks", on_previous_of_match / count}}};
}

}  // namespace rapt::train
