// Every bad layer and layer call with its exact error message, for the tests of C++ and of C.
#pragma once

#include <cstddef>
#include <functional>
#include <ostream>
#include <string>
#include <vector>

#include "rapt/multi_head_attention.h"

namespace rapt::test {

struct BadConfig {
  const char* name;
  std::function<void(MultiHeadAttentionConfig&)> spoil;
  const char* message;  // if it ends in a space: the beginning of the message
};

inline void PrintTo(const BadConfig& bad, std::ostream* stream) { *stream << bad.name; }

// The valid layer that each invalid one differs from in one argument.
inline MultiHeadAttentionConfig good_config() { return {.embed_size = 8, .heads = 4, .kv_heads = 2}; }
const std::vector<BadConfig>& bad_configs();

// A valid call with two rows of three query tokens and five key tokens; each invalid call differs from it in one
// argument.
struct LayerCall {
  MultiHeadAttentionConfig config{.embed_size = 8, .heads = 4, .kv_heads = 2, .batch_first = true};
  Tensor x{{2, 3, 8}}, memory{{2, 5, 8}}, out{{2, 3, 8}}, weights{{2, 3, 5}}, mask{{3, 5}, DType::boolean},
      spare{{64, 64}};
  ConstTensorView query = x, key = memory, value{};
  LayerOutputs outputs{out, weights};
  LayerOptions options{.weights = ReturnWeights::mean};
  std::vector<std::byte> bytes = std::vector<std::byte>(16);

  TensorView shaped(const Dims& shape, DType dtype = DType::f32) { return {spare.view().data(), dtype, shape}; }
};

struct BadLayerCall {
  const char* name;
  std::function<void(LayerCall&)> spoil;
  const char* message;
};

inline void PrintTo(const BadLayerCall& bad, std::ostream* stream) { *stream << bad.name; }

const std::vector<BadLayerCall>& bad_layer_calls();

// Like expect_refusal in support/bad_calls.h.
void expect_refusal(const BadLayerCall& bad, const std::function<std::string(LayerCall&)>& attempt);

}  // namespace rapt::test
