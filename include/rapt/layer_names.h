// The names that people give to the parameters of an attention layer, and the layers found by them in a file.
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

// Whose names. A weight is (outputs, inputs) as nn.Linear has it, but for c_attn's. Biases end in `.bias`.
enum class NameFamily : std::uint8_t {
  torch,     // nn.MultiheadAttention: in_proj_weight or q_proj_weight …, in_proj_bias, out_proj.weight, out_proj.bias
  w_q,       // W_q.weight, W_k, W_v, W_o
  w_query,   // W_query.weight, W_key, W_value, out_proj
  q_linear,  // q_linear.weight, k_linear, v_linear, o_linear
  wq,        // wq.weight, wk, wv, wo
  q_proj,    // q_proj.weight, k_proj, v_proj, o_proj; out_proj is read too
  query,     // BERT: self.query.weight, self.key, self.value, output.dense; without `self` too
  to_q,      // to_q.weight, to_k, to_v, to_out.0
  qkv,       // packed: qkv.weight, proj; qkv_proj and Wqkv are read too
  c_attn,    // GPT-2, packed, weights (inputs, outputs): c_attn.weight, c_proj
};

std::span<const NameFamily> name_families();
std::string_view name_of(NameFamily family);  // "torch", "W_q", "W_query", "q_linear", "wq", …
std::optional<NameFamily> name_family(std::string_view name);

// A tensor of the file, and what it is in the layer.
struct TensorRole {
  std::string tensor;  // with the prefix
  std::string role;    // "weight of q", "bias of q, k and v", "causal mask"
};

// A layer by its tensors. Shapes tell every size but the number of heads.
struct FoundLayer {
  std::string prefix;  // "encoder.layers.0.self_attn.", with the dot at its end; may be empty
  NameFamily family = NameFamily::torch;
  std::vector<TensorRole> tensors;
  std::vector<std::string> left_over;  // tensors under the prefix that the layer does not take
  std::vector<std::string> missing;    // biases that others of the layer have and these not: taken as zeros
  std::int64_t embed_size = 0;
  std::int64_t key_size = 0;
  std::int64_t value_size = 0;
  std::int64_t output_size = 0;
  std::int64_t query_width = 0;     // Hq · D
  std::int64_t key_width = 0;       // Hkv · D
  std::int64_t context_length = 0;  // of a stored causal mask; 0: there is none
  bool bias = false;
  bool output_bias = false;
  bool add_bias_kv = false;
  bool separate = false;    // q, k and v have a weight each
  bool transposed = false;  // weights are (inputs, outputs)

  // Numbers of heads that these sizes allow, ascending.
  std::vector<std::int64_t> possible_heads() const;
};

// Every layer whose tensors are all there and fit together, in the order of the tensors. A mask counts by its name and
// shape; load looks at its numbers too.
std::vector<FoundLayer> find_attention_layers(const std::vector<NamedTensor>& tensors);
std::vector<FoundLayer> find_attention_layers(const SafetensorsFile& file);

struct LoadOptions {
  // Where the layer's names begin, with or without the last dot. Empty, or a part of the whole: the only layer there.
  std::string prefix{};
  std::int64_t heads = 0;     // Hq: no shape tells it. 0: what save noted in the file, where it did
  std::int64_t kv_heads = 0;  // 0: as many as the shapes have
  bool batch_first = false;
  bool add_zero_attention = false;
  double dropout = 0.0;
  std::optional<RotaryOptions> rotary{};
  std::optional<DType> dtype{};  // of the parameters; absent: the file's
};

struct SaveOptions {
  NameFamily family = NameFamily::torch;
  std::string prefix{};
  // q, k and v in one tensor, or in one each. Absent: as the family has it, and for torch as the layer has it.
  std::optional<bool> packed{};
  std::optional<DType> dtype{};  // absent: the layer's
};

// Named tensors, with the memory of those that are no part of the layer.
struct StateDict {
  std::vector<NamedTensor> tensors;
  std::vector<Tensor> memory;
};

}  // namespace rapt
#pragma GCC visibility pop
