// A training step of the layer: forward, then backward to its input and its parameters.
#pragma once

#include <vector>

#include "bench/harness/mha_variants.h"

namespace rapt::bench {

class TrainingLayer : public MhaLayer {
 public:
  TrainingLayer(MultiHeadAttention layer, bool causal);

  void run(const MhaCall& call) override;
  std::span<const Tensor> gradients() const override { return gradients_; }

 private:
  MultiHeadAttention layer_;
  std::vector<Tensor> gradients_;  // of the parameters, in their order
  LayerActivations kept_;
  LayerWorkspace workspace_;
  LayerOptions options_;
};

}  // namespace rapt::bench
