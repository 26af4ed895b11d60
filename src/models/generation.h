// The most likely tokens, and text that GPT-2 continues token by token with a KV cache.
//
//   Generation text(model, prompt, {.temperature = 0.8});
//   while (…) text.next().token
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "models/model.h"
#include "models/network/pass.h"
#include "rapt/kv_cache.h"
#include "rapt/tensor.h"

namespace rapt::models {

struct Likely {
  std::int32_t token = 0;
  double probability = 0;
};

// The first `count` tokens of one position's logits (V), the most likely first; of equal ones, the smaller id first.
// The probabilities are softmax(logits / temperature); with temperature 0, the most likely token has all of it.
std::vector<Likely> most_likely(const ConstTensorView& logits, std::size_t count, double temperature = 1.0);

struct GenerationOptions {
  double temperature = 0;  // 0: always the most likely token
  std::uint64_t seed = 1;  // of the draws, at another temperature
  std::vector<HeadPlace> off{};
  std::int64_t most = 0;  // tokens to generate; 0: as many as the model has positions for
};

class Generation {
 public:
  // The model must outlive this object. Throws Error if the model does not predict the next token.
  Generation(const Model& model, std::span<const std::int32_t> prompt, const GenerationOptions& options = {});

  // Whether every position is taken, so that there is no next token.
  bool full() const { return length_ + std::ssize(fresh_) > model_.config().most_tokens(); }
  // The next token, with its probability at the temperature. Throws Error if full().
  Likely next();
  // The logits (V) that the last token was chosen by: the same bits as those of Model::run on the whole text.
  const Tensor& logits() const { return logits_; }

 private:
  Likely drawn() const;

  const Model& model_;
  GenerationOptions options_;
  SwitchedOff off_;
  std::vector<KvCache> caches_;
  std::vector<std::int32_t> fresh_;  // tokens that are not in the caches yet
  std::int64_t length_ = 0;          // tokens in the caches
  std::uint32_t steps_ = 0;
  Tensor logits_;
};

}  // namespace rapt::models
