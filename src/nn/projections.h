// The matrices of a layer, packed for their products on first use.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "attention/engine_matrix.h"
#include "nn/layer_workspace.h"
#include "nn/parameters.h"

namespace rapt::nn {

// What a product computes. Several projections may use the same weights; which of them are packed depends on how the
// layer is called.
enum class Projection : std::uint8_t {
  qkv,  // of one x: self-attention
  q,
  kv,  // of one x that is key and value
  k,
  v,
  out,
};

// Rows begin … end − 1 of a parameter.
struct Rows {
  std::int64_t begin, end;
};
struct ParameterRows {
  const char* name;
  std::optional<Rows> rows;  // absent: all rows
};

class Projections {
 public:
  Projections(const MultiHeadAttentionConfig& config, const Parameters& parameters)
      : config_(config), parameters_(parameters) {
    find_biases();
  }

  // Thread-safe: one thread packs, the others wait.
  const EngineMatrix& matrix(Projection which, Engine engine, const Workers& workers) const;
  const EngineMatrix& transposed(Projection which, Engine engine, const Workers& workers) const;  // for backward
  const ConstTensorView& bias(Projection which) const {
    return biases_[static_cast<std::size_t>(which)];
  }  // undefined if there is none

  // The location of a projection's weights among the parameters.
  ParameterRows weight_rows(Projection which) const;
  ParameterRows bias_rows(Projection which) const;

  void discard_packed() { packed_ = std::make_unique<Packed>(); }  // for changed parameters
  void find_biases();                                              // for parameters in new memory

 private:
  // Not std::once_flag, because unwinding through it allocates, and packing throws when memory runs out.
  struct Slot {
    std::atomic<bool> full = false;
    std::mutex filling;
    std::optional<EngineMatrix> matrix;
  };
  using Slots = std::array<Slot, 6>;  // by Projection
  struct Packed {
    std::vector<Slots> plain, transposed;  // by the engine's index in engines()
    Packed();
  };

  ConstTensorView weight(Projection which) const;
  const EngineMatrix& filled(std::vector<Slots>& slots, Projection which, bool transposed, Engine engine,
                             const Workers& workers) const;

  const MultiHeadAttentionConfig& config_;
  const Parameters& parameters_;
  std::array<ConstTensorView, 6> biases_;  // by Projection
  std::unique_ptr<Packed> packed_ = std::make_unique<Packed>();
};

// Whether the first two dimensions can be merged.
inline bool lies_evenly(const ConstTensorView& x) {
  return x.size(0) <= 1 || x.size(1) <= 1 || x.stride(0) == x.stride(1) * x.size(1);
}

// Calls visit(x, y) with matrices of as many tokens as possible, batch rows and tokens ascending; x and y are (B, L,
// …).
template <class Visit>
void for_each_in_order(const ConstTensorView& x, const ConstTensorView& y, const Visit& visit) {
  if (lies_evenly(x) && lies_evenly(y)) return visit(x.merge(0), y.merge(0));
  for (std::int64_t b = 0; b < x.size(0); ++b) visit(x.select(0, b), y.select(0, b));
}

// Products of a layer, on tensors that are already checked. Each is planned once and runs in the call's scratch memory.
struct LayerProducts {
  const Workers& workers;
  Scratch& scratch;

  // y = x · Wᵀ + bias, or + start, for x (M, K) and y (M, N).
  void multiply(const EngineMatrix& matrix, const ConstTensorView& x, const TensorView& y, const ConstTensorView& bias,
                const ConstTensorView& start) const;
  // y = x · Wᵀ + bias for x (B, L, K) and y (B, L, N), in as few products as their strides allow: one, unless the
  // strides of batch and tokens cannot be merged.
  void multiply_tokens(const EngineMatrix& matrix, const ConstTensorView& x, const TensorView& y,
                       const ConstTensorView& bias) const;
  // y += x · Wᵀ; y is f32 or f64.
  void add_tokens(const EngineMatrix& matrix, const ConstTensorView& x, const TensorView& y) const;
};

}  // namespace rapt::nn
