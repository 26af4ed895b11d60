// The variants of the layer, all with the same parameters.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <utility>

#include "rapt/multi_head_attention.h"
#include "rapt/tensor.h"

namespace rapt::bench {

enum class MhaVariant : std::uint8_t {
  per_head,      // three small products and attention, separately for each head
  separate,      // one product each for q, k and v
  packed,        // one product for all three: the baseline of the other variants
  plain,         // packed, with the plain formula: all scores are written to memory
  mean_weights,  // packed, and the mean of the weights over heads
  all_weights,   // packed, and the weights of every head
  bf16,          // packed; parameters, input and output in this type
  f16,
  training,          // packed, with backward: the gradients of input and parameters
  training_dropout,  // the same with dropout
};

// The names on the command line.
inline constexpr std::array<std::pair<std::string_view, MhaVariant>, 10> kMhaVariants{{
    {"per-head", MhaVariant::per_head},
    {"separate", MhaVariant::separate},
    {"packed", MhaVariant::packed},
    {"plain", MhaVariant::plain},
    {"mean-weights", MhaVariant::mean_weights},
    {"all-weights", MhaVariant::all_weights},
    {"bf16", MhaVariant::bf16},
    {"f16", MhaVariant::f16},
    {"training", MhaVariant::training},
    {"training-dropout", MhaVariant::training_dropout},
}};

inline bool trains(MhaVariant variant) {
  return variant == MhaVariant::training || variant == MhaVariant::training_dropout;
}

// Self-attention without biases of q, k and v, but with a bias of the output.
struct MhaSizes {
  std::int64_t batch = 8;
  std::int64_t tokens = 1024;
  std::int64_t embed = 768;  // E
  std::int64_t heads = 12;
  std::int64_t kv_heads = 0;  // 0: as many as heads
  bool causal = true;

  std::int64_t head_size() const { return embed / heads; }
  std::int64_t key_width() const { return kv_heads * head_size(); }  // number of key elements per token
  // Useful work: 2·M·N·K for each projection, and 4·D for every (query, key) pair of a head that causal leaves visible.
  // Backward has two products per projection instead of one, and five per pair instead of two.
  double flops(MhaVariant variant = MhaVariant::packed) const;
};

std::string_view name_of(MhaVariant variant);   // "packed"
std::string_view words_of(MhaVariant variant);  // "packed qkv"
DType type_of(MhaVariant variant);              // of parameters, input and output
ReturnWeights weights_of(MhaVariant variant);

double dropout_of(MhaVariant variant);

// rapt's layer with one packed projection. Its parameters are those of `like` rounded to `type`; if `like` is null,
// they are drawn from a fixed seed.
MultiHeadAttention packed_layer(const MhaSizes& sizes, DType type, const MultiHeadAttention* like = nullptr,
                                double dropout = 0.0);

ConstTensorView parameter(const MultiHeadAttention& layer, std::string_view name);

struct MhaCall {
  ConstTensorView x{};   // (B, L, E)
  TensorView out{};      // (B, L, E)
  TensorView weights{};  // (B, L, L) or (B, Hq, L, L), if the variant returns them
  TensorView scores{};   // (B, Hq, L, L), if the variant writes them
  // (B, L, E), for variants with backward.
  ConstTensorView dout{};
  TensorView dx{};
  int threads = 1;
};

// A layer of one variant. It keeps its memory between calls, so that timed calls do not allocate.
class MhaLayer {
 public:
  MhaLayer() = default;
  MhaLayer(const MhaLayer&) = delete;
  MhaLayer& operator=(const MhaLayer&) = delete;
  virtual ~MhaLayer() = default;

  virtual void run(const MhaCall& call) = 0;
  // The gradients of the parameters of packed qkv, in their order, from the last call; empty without backward.
  virtual std::span<const Tensor> gradients() const { return {}; }

  // `parameters`: the packed layer in f32.
  static std::unique_ptr<MhaLayer> make(MhaVariant variant, const MhaSizes& sizes,
                                        const MultiHeadAttention& parameters);
};

}  // namespace rapt::bench
