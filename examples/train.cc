// Trains a small transformer, saves it, and resumes training.
//
// The task: eight letters, and then the same eight again. The model must learn to copy the letter from eight positions
// back, whatever the letters are. This requires attention by position.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <random>
#include <string>
#include <vector>

#include "rapt/transformer.h"

namespace {

constexpr std::int64_t kLetters = 12, kBlock = 8, kBatch = 32;

struct Batch {
  std::vector<std::int32_t> tokens, targets;  // (kBatch, 2 · kBlock)
};

Batch make_batch(std::mt19937& random) {
  Batch batch;
  for (std::int64_t row = 0; row < kBatch; ++row) {
    std::vector<std::int32_t> block(kBlock);
    for (std::int32_t& letter : block) letter = static_cast<std::int32_t>(random() % kLetters);
    for (std::int64_t i = 0; i < 2 * kBlock; ++i) {
      batch.tokens.push_back(block[static_cast<std::size_t>(i % kBlock)]);
      // The next letter. In the first half it cannot be predicted.
      const bool counts = i >= kBlock - 1 && i + 1 < 2 * kBlock;
      batch.targets.push_back(counts ? block[static_cast<std::size_t>((i + 1) % kBlock)] : rapt::kNoTarget);
    }
  }
  return batch;
}

// The fraction of targets that have the largest logit.
double accuracy(const rapt::Transformer& model, const Batch& batch) {
  const rapt::Tensor logits = model.logits(batch.tokens, kBatch);
  std::int64_t right = 0, all = 0;
  for (std::size_t t = 0; t < batch.targets.size(); ++t) {
    if (batch.targets[t] == rapt::kNoTarget) continue;
    const auto row = logits.values<float>().subspan(t * kLetters, kLetters);
    right += std::max_element(row.begin(), row.end()) - row.begin() == batch.targets[t];
    ++all;
  }
  return static_cast<double>(right) / static_cast<double>(all);
}

// The most likely letters after `text`, one at a time. Each step reads earlier keys and values from the cache.
std::string continued(const rapt::Transformer& model, const std::string& text, std::int64_t count) {
  rapt::TransformerCache cache;
  std::vector<std::int32_t> next;
  for (const char letter : text) next.push_back(letter - 'a');
  std::string all = text;
  for (std::int64_t n = 0; n < count; ++n) {
    const rapt::Tensor logits = model.logits(next, cache);
    const auto last = logits.values<float>().last(kLetters);
    next = {static_cast<std::int32_t>(std::max_element(last.begin(), last.end()) - last.begin())};
    all.push_back(static_cast<char>('a' + next[0]));
  }
  return all;
}

int run() {
  rapt::Transformer model(
      {.vocabulary = kLetters, .context = 2 * kBlock, .width = 32, .layers = 1, .heads = 2, .hidden = 64}, /*seed=*/1);
  std::mt19937 random(1);
  for (int step = 1; step <= 150; ++step) {
    const Batch batch = make_batch(random);
    const double loss = model.add_gradients(batch.tokens, batch.targets, kBatch);
    model.step({.rate = 0.01, .beta2 = 0.99}, /*clip=*/1.0);
    if (step % 50 == 0) std::printf("step %3d  loss %.4f\n", step, loss);
  }
  const double right = accuracy(model, make_batch(random));
  std::printf("right: %.1f %% of the letters in new sequences\n", 100.0 * right);
  std::printf("abcdefgh -> %s\n", continued(model, "abcdefgh", kBlock).c_str());

  // model.save("model.safetensors", /*training=*/true) also writes the state of the optimizer, and
  // rapt::Transformer::load("model.safetensors") continues from there, bit for bit.
  return right > 0.99 ? 0 : 1;
}

}  // namespace

int main() {
  try {
    return run();
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
