#include "bench/harness/mha_training.h"

#include <algorithm>
#include <utility>

namespace rapt::bench {

TrainingLayer::TrainingLayer(MultiHeadAttention layer, bool causal)
    : layer_(std::move(layer)), gradients_(layer_.zero_gradients()) {
  options_.attention.causal = causal;
  options_.attention.dropout.seed = 1;
  options_.training = true;
  options_.workspace = &workspace_;
  options_.keep = &kept_;
}

void TrainingLayer::run(const MhaCall& call) {
  // As after an optimizer step, parameters are packed again, and gradients start at zero.
  layer_.change_parameters([](std::size_t, const TensorView&) {});
  for (Tensor& gradient : gradients_) {
    if (gradient.dtype() == DType::f64) {
      std::ranges::fill(gradient.values<double>(), 0.0);
    } else {
      std::ranges::fill(gradient.values<float>(), 0.0F);
    }
  }
  options_.attention.threads = call.threads;
  layer_.forward({call.out, {}}, call.x, {}, {}, options_);
  layer_.backward({.dquery = call.dx, .parameters = gradients_}, {call.dout, {}}, kept_, call.x, {}, {}, options_);
}

}  // namespace rapt::bench
