// BERT and its relatives (MiniLM, DistilBERT, RoBERTa) and GPT-2, whole, with every attention weight visible.
//
//   const ModelFiles files = ModelFiles::folder("all-MiniLM-L6-v2");
//   const Model model = Model::read(files);
//   const Run run = model.run(ids);
//   run.weights.view().at<float>(5, 11, 8, 2)  // layer 5, head 11: what token 8 attends to
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "models/config.h"
#include "rapt/tensor.h"

namespace rapt::models {

class ModelFiles;

// A head by its layer and its number there, both from 0.
struct HeadPlace {
  std::int64_t layer = 0;
  std::int64_t head = 0;
  friend bool operator==(const HeadPlace&, const HeadPlace&) = default;
};

// What a model can predict.
enum class Predicts : std::uint8_t {
  nothing,
  masked,  // the token at each position, such as that of [MASK]
  next,    // the token after each position
};

struct RunOptions {
  // Heads that are switched off: their output, before the output projection, is zero, and their weights are returned as
  // zero.
  std::vector<HeadPlace> off{};
  bool hidden = true;   // return the hidden states
  bool weights = true;  // return the attention weights
  bool logits = false;  // return the logits of every position, if the model predicts anything
};

// T tokens. What was not requested is empty.
struct Run {
  // (L + 1, T, E): the embedding, then the output of each layer. In GPT-2 the last one is after the final norm.
  Tensor hidden;
  Tensor weights;  // (L, H, T, T)
  Tensor logits;   // (T, V)
};

struct Parts;

class Model {
 public:
  // The files must outlive the model, which reads embeddings in place.
  static Model read(const ModelFiles& files);
  Model(Model&&) noexcept;
  Model& operator=(Model&&) noexcept;
  ~Model();

  const ModelConfig& config() const;
  Predicts predicts() const;

  // Throws Error unless there are 1 to config().most_tokens() tokens, with ids below config().vocabulary, and unless
  // the heads to switch off exist.
  Run run(std::span<const std::int32_t> tokens, const RunOptions& options = {}) const;

  const Parts& parts() const { return *parts_; }  // for generation.cc

 private:
  explicit Model(std::unique_ptr<const Parts> parts);
  std::unique_ptr<const Parts> parts_;
};

}  // namespace rapt::models
