// C++ arguments as a C program would represent them. Written independently of bindings/c (except for windows), so that
// an error there is not repeated here.
#pragma once

#include <algorithm>
#include <array>
#include <deque>
#include <optional>
#include <span>
#include <vector>

#include "rapt/attention.h"
#include "rapt/kv_cache.h"
#include "rapt/multi_head_attention.h"
#include "rapt/rapt.h"

namespace rapt::test {

// Whether two C structs, which have no padding, are equal byte by byte.
template <class Struct>
bool same_bytes(const Struct& a, const Struct& b) {
  const auto x = std::as_bytes(std::span(&a, 1)), y = std::as_bytes(std::span(&b, 1));
  return std::equal(x.begin(), x.end(), y.begin());
}

// Results are valid as long as this object exists; the arguments must live as long.
class CArguments {
 public:
  CArguments() = default;
  CArguments(const CArguments&) = delete;
  CArguments& operator=(const CArguments&) = delete;

  const DLTensor* tensor(const ConstTensorView& view);  // null for an undefined view
  const rapt_attention_options* options(const AttentionOptions& from);
  const rapt_attention_outputs* outputs(const AttentionOutputs& from);
  const rapt_attention_upstream* upstream(const AttentionUpstream& from);
  const rapt_attention_gradients* gradients(const AttentionGradients& from);

  const rapt_rotary_options* rotary(const std::optional<RotaryOptions>& from);
  const rapt_layer_config* config(const MultiHeadAttentionConfig& from);
  // The result has no cache, workspace or activations, which are handles in C.
  rapt_layer_options* options(const LayerOptions& from);
  const rapt_layer_outputs* outputs(const LayerOutputs& from);
  const rapt_layer_upstream* upstream(const LayerUpstream& from);
  rapt_layer_gradients* gradients(const LayerGradients& from);  // without parameters, which C has as a handle

 private:
  struct Held {
    std::array<std::int64_t, Dims::kMaxRank> shape{}, strides{};
    DLTensor tensor{};
  };
  std::vector<rapt_capture>& captures(const std::vector<Capture>& from);
  std::vector<rapt_mask_gradient>& mask_gradients(const std::vector<MaskGradient>& from);

  std::deque<Held> tensors_;
  std::deque<std::vector<rapt_mask>> masks_;
  std::deque<std::vector<rapt_capture>> captures_;
  std::deque<std::vector<rapt_weights_gradient>> weights_gradients_;
  std::deque<std::vector<rapt_mask_gradient>> mask_gradients_;
  std::deque<rapt_attention_options> options_;
  std::deque<rapt_attention_outputs> outputs_;
  std::deque<rapt_attention_upstream> upstreams_;
  std::deque<rapt_attention_gradients> gradients_;
  std::deque<rapt_rotary_options> rotaries_;
  std::deque<rapt_layer_config> configs_;
  std::deque<rapt_layer_options> layer_options_;
  std::deque<rapt_layer_outputs> layer_outputs_;
  std::deque<rapt_layer_upstream> layer_upstreams_;
  std::deque<rapt_layer_gradients> layer_gradients_;
};

}  // namespace rapt::test
