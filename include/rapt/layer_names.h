// Naming schemes for the parameters of an attention layer, and a search for such layers in a file.
//
//   for (const FoundLayer& layer : find_attention_layers(SafetensorsFile("model.safetensors"))) …
//
// MultiHeadAttention::load and save (rapt/multi_head_attention.h) read and write these names.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "rapt/named_tensor.h"
#include "rapt/rotary.h"
#include "rapt/safetensors.h"
#include "rapt/tensor.h"

#pragma GCC visibility push(default)
namespace rapt {

// A naming scheme, by the names that save writes; load also reads other spellings of them (src/nn/names.cc). Weights
// are (outputs, inputs) as in nn.Linear, except for c_attn. Biases end in `.bias`, except in_proj_bias.
enum class NameFamily : std::uint8_t {
  torch,     // nn.MultiheadAttention: in_proj_weight or q_proj_weight …, in_proj_bias, out_proj.weight, out_proj.bias
  w_q,       // W_q.weight, W_k, W_v, W_o
  w_query,   // W_query.weight, W_key, W_value, out_proj
  q_linear,  // q_linear.weight, k_linear, v_linear, o_linear
  wq,        // wq.weight, wk, wv, wo
  q_proj,    // q_proj.weight, k_proj, v_proj, o_proj
  query,     // BERT: self.query.weight, self.key, self.value, output.dense
  to_q,      // to_q.weight, to_k, to_v, to_out.0
  qkv,       // q, k and v in one tensor: qkv.weight, proj
  c_attn,    // GPT-2, q, k and v in one tensor, weights (inputs, outputs): c_attn.weight, c_proj
};

std::span<const NameFamily> name_families();
std::string_view name_of(NameFamily family);  // "torch", "W_q", "W_query", "q_linear", "wq", …
std::optional<NameFamily> name_family(std::string_view name);

// A tensor in the file and its role in the layer.
struct TensorRole {
  std::string tensor;  // the tensor's name, with the prefix
  std::string role;    // "weight of q", "bias of q, k and v", "causal mask"
};

// A layer found by its tensors. Shapes give every size except the number of heads.
struct FoundLayer {
  std::string prefix;  // "encoder.layers.0.self_attn.", with the trailing dot; may be empty
  NameFamily family = NameFamily::torch;
  std::vector<TensorRole> tensors;
  std::vector<std::string> left_over;  // tensors under the prefix that the layer does not use
  std::vector<std::string> missing;    // biases of q, k or v that are absent although another is present; zero is used
  std::int64_t embed_size = 0;
  std::int64_t key_size = 0;
  std::int64_t value_size = 0;
  std::int64_t output_size = 0;
  std::int64_t query_width = 0;     // Hq · D
  std::int64_t key_width = 0;       // Hkv · D
  std::int64_t context_length = 0;  // of a stored causal mask; 0: no mask
  bool bias = false;
  bool output_bias = false;
  bool add_bias_kv = false;
  bool separate = false;    // separate weights for q, k and v
  bool transposed = false;  // weights are (inputs, outputs)

  // The numbers of heads that these sizes allow, ascending.
  std::vector<std::int64_t> possible_heads() const;
};

// Every layer whose tensors are complete and consistent, in the order of the tensors. A mask is recognized by its name
// and shape; load also checks its values.
std::vector<FoundLayer> find_attention_layers(const std::vector<NamedTensor>& tensors);
std::vector<FoundLayer> find_attention_layers(const SafetensorsFile& file);

struct LoadOptions {
  // The prefix of the layer's names, with or without the trailing dot. An empty or partial prefix selects the only
  // layer under it.
  std::string prefix{};
  std::int64_t heads = 0;     // Hq, which the shapes do not give; 0: as save recorded it in the .safetensors file
  std::int64_t kv_heads = 0;  // 0: as given by the shapes
  bool batch_first = false;
  bool add_zero_attention = false;
  double dropout = 0.0;
  std::optional<RotaryOptions> rotary{};
  std::optional<DType> dtype{};  // of the parameters; absent: the file's
};

struct SaveOptions {
  NameFamily family = NameFamily::torch;
  std::string prefix{};
  // q, k and v in one tensor or in separate tensors. Absent: as usual for the family; for torch, as in the layer.
  std::optional<bool> packed{};
  std::optional<DType> dtype{};  // absent: the layer's
};

// Named tensors. `memory` owns the tensors that are not views into the layer.
struct StateDict {
  std::vector<NamedTensor> tensors;
  std::vector<Tensor> memory;
};

}  // namespace rapt
#pragma GCC visibility pop
