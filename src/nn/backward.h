// Backward of a layer.
#pragma once

#include "nn/layer_steps.h"

namespace rapt::nn {

inline constexpr const char* kBackward = "MultiHeadAttention::backward";  // the prefix of errors

// One call of backward after validation: tensors are (B, L, …), whatever order the caller used.
struct BackwardCall {
  BackwardCall(const MultiHeadAttentionConfig& config, const Parameters& parameters, const LayerGradients& gradients,
               const LayerUpstream& upstream, const LayerActivations& kept, const ConstTensorView& query,
               const ConstTensorView& key, const ConstTensorView& value, const LayerOptions& options);

  LayerCall forward;
  const LayerGradients& gradients;
  const LayerActivations& kept;
  bool key_given, value_given;
  ConstTensorView dout;             // (B, Lq, O)
  ConstTensorView dweights;         // (B, Lq, Lk) or (B, Hq, Lq, Lk); undefined: zero
  TensorView dquery, dkey, dvalue;  // undefined: not requested
};

void backward(const BackwardCall& call, const LayerParts& layer, LayerWorkspace::Memory& memory);

}  // namespace rapt::nn
