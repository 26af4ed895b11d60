#include "models/network/names.h"

namespace rapt::models {
namespace {

constexpr TensorNames kBert{.tokens = "embeddings.word_embeddings",
                            .positions = "embeddings.position_embeddings",
                            .types = "embeddings.token_type_embeddings",
                            .input_norm = "embeddings.LayerNorm",
                            .output_norm = "",
                            .layers = "encoder.layer.",
                            .attention = "attention.",
                            .projections = {"self.query", "self.key", "self.value", "output.dense"},
                            .attention_norm = "attention.output.LayerNorm",
                            .up = "intermediate.dense",
                            .down = "output.dense",
                            .mlp_norm = "output.LayerNorm",
                            .predictor_dense = "cls.predictions.transform.dense",
                            .predictor_norm = "cls.predictions.transform.LayerNorm",
                            .decoder = "cls.predictions.decoder",
                            .decoder_bias = "cls.predictions.bias"};

constexpr TensorNames kRoberta = [] {
  TensorNames names = kBert;
  names.predictor_dense = "lm_head.dense";
  names.predictor_norm = "lm_head.layer_norm";
  names.decoder = "lm_head.decoder";
  names.decoder_bias = "lm_head.bias";
  return names;
}();

constexpr TensorNames kDistilBert{.tokens = "embeddings.word_embeddings",
                                  .positions = "embeddings.position_embeddings",
                                  .types = "",
                                  .input_norm = "embeddings.LayerNorm",
                                  .output_norm = "",
                                  .layers = "transformer.layer.",
                                  .attention = "attention.",
                                  .projections = {"q_lin", "k_lin", "v_lin", "out_lin"},
                                  .attention_norm = "sa_layer_norm",
                                  .up = "ffn.lin1",
                                  .down = "ffn.lin2",
                                  .mlp_norm = "output_layer_norm",
                                  .predictor_dense = "vocab_transform",
                                  .predictor_norm = "vocab_layer_norm",
                                  .decoder = "vocab_projector",
                                  .decoder_bias = "vocab_projector.bias"};

constexpr TensorNames kGpt2{.tokens = "wte",
                            .positions = "wpe",
                            .types = "",
                            .input_norm = "",
                            .output_norm = "ln_f",
                            .layers = "h.",
                            .attention = "attn.",
                            .projections = {"c_attn", "", "", "c_proj"},
                            .attention_norm = "ln_1",
                            .up = "mlp.c_fc",
                            .down = "mlp.c_proj",
                            .mlp_norm = "ln_2",
                            .predictor_dense = "",
                            .predictor_norm = "",
                            .decoder = "lm_head",
                            .decoder_bias = ""};

}  // namespace

const TensorNames& tensor_names(Family family) {
  switch (family) {
    case Family::distilbert: return kDistilBert;
    case Family::roberta: return kRoberta;
    case Family::gpt2: return kGpt2;
    case Family::bert: break;
  }
  return kBert;
}

}  // namespace rapt::models
