// The matrices of a layer, packed for their products when they are first needed.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>

#include "nn/parameters.h"
#include "rapt/packed_matrix.h"

namespace rapt::nn {

// What a product computes. Several may share their numbers: which are packed depends on how a layer is called.
enum class Projection : std::uint8_t {
  qkv,  // of one x: self-attention
  q,
  kv,  // of one x that is key and value
  k,
  v,
  out,
};

// Rows begin … end − 1 of a parameter; none: all of it.
struct Rows {
  std::int64_t begin, end;
};
struct ParameterRows {
  const char* name;
  std::optional<Rows> rows;
};

class Projections {
 public:
  Projections(const MultiHeadAttentionConfig& config, const Parameters& parameters)
      : config_(config), parameters_(parameters) {}

  // Several threads may ask at once: one packs, the others wait.
  const PackedMatrix& matrix(Projection which, Engine engine) const;
  const PackedMatrix& transposed(Projection which, Engine engine) const;  // for backward
  ConstTensorView bias(Projection which) const;                           // undefined: none

  // Where its numbers are among the parameters.
  ParameterRows weight_rows(Projection which) const;
  ParameterRows bias_rows(Projection which) const;

  void forget() { packed_ = std::make_unique<Packed>(); }  // the parameters have changed

 private:
  // No std::once_flag: to unwind through it takes memory, and packing throws where there is none.
  struct Slot {
    std::atomic<bool> full = false;
    std::mutex filling;
    PackedMatrix matrix;
  };
  struct Packed {
    using Slots = std::array<std::array<Slot, 6>, 2>;  // for the fast engine, and for the reference
    Slots slots, transposed;
  };

  ConstTensorView weight(Projection which) const;
  static const PackedMatrix& filled(Slot& slot, const ConstTensorView& weight, Engine engine);

  const MultiHeadAttentionConfig& config_;
  const Parameters& parameters_;
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

// y = x · Wᵀ + bias for x (B, L, K) and y (B, L, N), in as few products as their strides allow: one, unless tokens of
// different batch rows lie unevenly.
struct TokenProduct {
  const PackedMatrix& matrix;
  ProductOptions options;
  bool add = false;  // y += x · Wᵀ instead; y is f32 or f64

  void operator()(const ConstTensorView& x, const TensorView& y) const;
  std::size_t workspace_bytes(const ConstTensorView& x, const TensorView& y) const;
};

}  // namespace rapt::nn
