// The weights of a model, ready to compute with.
#pragma once

#include <cstdint>
#include <mutex>
#include <optional>
#include <vector>

#include "models/config.h"
#include "models/network/weights.h"
#include "rapt/multi_head_attention.h"
#include "rapt/packed_matrix.h"
#include "rapt/tensor.h"

namespace rapt::models {

struct Linear {
  PackedMatrix weight;
  Tensor bias;  // f32

  Tensor operator()(const ConstTensorView& x) const;  // (T, K) -> (T, N)
};

struct Norm {
  Tensor weight, bias;  // (E), f32
  double epsilon = 0;

  void operator()(const TensorView& y, const ConstTensorView& x) const;
};

struct Block {
  MultiHeadAttention attention;
  Norm attention_norm, mlp_norm;
  Linear up, down;
};

// What turns the output of the last layer into logits.
class Predictor {
 public:
  Predictor(std::optional<Linear> dense, Norm norm, Activation activation, const ConstTensorView& decoder, Tensor bias);

  Tensor logits(const ConstTensorView& hidden) const;  // (T, E) -> (T, V)

 private:
  std::optional<Linear> dense_;  // not in GPT-2
  Norm norm_;
  Activation activation_;
  ConstTensorView decoder_;  // (V, E), of the files
  Tensor bias_;              // (V); empty: none
  // The largest matrix of the model is packed when it is first needed: many a reader only wants to see attention.
  mutable std::once_flag once_;
  mutable PackedMatrix packed_;
};

struct Parts {
  explicit Parts(const ModelFiles& files);

  ModelConfig config;
  ConstTensorView tokens, positions, types;  // embedding tables, of the files
  std::optional<Norm> input_norm, output_norm;
  std::vector<Block> blocks;
  std::optional<Predictor> predictor;
};

// y may alias x; both are contiguous f32.
void activate(Activation activation, const TensorView& y, const ConstTensorView& x);

}  // namespace rapt::models
