// How each family names its tensors, without the prefix and without .weight and .bias.
#pragma once

#include <array>
#include <string>
#include <string_view>

#include "models/config.h"

namespace rapt::models {

struct TensorNames {
  std::string_view tokens, positions, types;  // embedding tables; "": there is none
  std::string_view input_norm, output_norm;   // before the first layer, and after the last
  std::string_view layers;                    // what layer n is under: layers + n + "."
  // Below a layer. Of the attention: its folder and its tensors, which MultiHeadAttention::load knows.
  std::string_view attention;
  std::array<std::string_view, 4> projections;  // q, k, v and out; in GPT-2 q, k and v are one: c_attn, c_proj
  std::string_view attention_norm, up, down, mlp_norm;
  // Beside the model: what makes predictions. GPT-2 has only the decoder.
  std::string_view predictor_dense, predictor_norm, decoder, decoder_bias;
};

const TensorNames& tensor_names(Family family);

}  // namespace rapt::models
