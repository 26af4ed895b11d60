// The variants of the layer, all with the same parameters.
#pragma once

#include <memory>
#include <span>
#include <string_view>

#include "bench_mha.h"
#include "rapt/multi_head_attention.h"
#include "rapt/tensor.h"

namespace rapt::cli {

std::string_view name_of(MhaVariant variant);   // "packed"
std::string_view words_of(MhaVariant variant);  // "packed qkv"
DType type_of(MhaVariant variant);              // of parameters, input and output
ReturnWeights weights_of(MhaVariant variant);

double dropout_of(MhaVariant variant);

// The library's layer, packed. With the parameters of `like`, rounded to `type`; without one, with its own.
MultiHeadAttention packed_layer(const MhaSizes& sizes, DType type, const MultiHeadAttention* like = nullptr,
                                double dropout = 0.0);

ConstTensorView parameter(const MultiHeadAttention& layer, std::string_view name);

struct MhaCall {
  ConstTensorView x{};   // (B, L, E)
  TensorView out{};      // (B, L, E)
  TensorView weights{};  // (B, L, L) or (B, Hq, L, L), where the variant gives them back
  TensorView scores{};   // (B, Hq, L, L), if it writes them
  // (B, L, E), where it goes back too.
  ConstTensorView dout{};
  TensorView dx{};
  int threads = 1;
};

// Keeps its memory from call to call: what is timed is a call like the one before.
class MhaLayer {
 public:
  MhaLayer() = default;
  MhaLayer(const MhaLayer&) = delete;
  MhaLayer& operator=(const MhaLayer&) = delete;
  virtual ~MhaLayer() = default;

  virtual void run(const MhaCall& call) = 0;
  // Of the parameters of packed qkv, in their order, as the last call found them; empty where it did not go back.
  virtual std::span<const Tensor> gradients() const { return {}; }

  // `parameters`: the packed layer in f32.
  static std::unique_ptr<MhaLayer> make(MhaVariant variant, const MhaSizes& sizes,
                                        const MultiHeadAttention& parameters);
};

}  // namespace rapt::cli
