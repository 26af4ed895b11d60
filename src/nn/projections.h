// The matrices of a layer, packed for their products when they are first needed.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <mutex>

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

class Projections {
 public:
  Projections(const MultiHeadAttentionConfig& config, const Parameters& parameters)
      : config_(config), parameters_(parameters) {}

  // Several threads may ask at once: one packs, the others wait.
  const PackedMatrix& matrix(Projection which, Engine engine) const;
  ConstTensorView bias(Projection which) const;  // undefined: none

  void forget() { packed_ = std::make_unique<Packed>(); }  // the parameters have changed

 private:
  struct Slot {
    std::once_flag once;
    PackedMatrix matrix;
  };
  struct Packed {
    std::array<std::array<Slot, 6>, 2> slots;  // for the fast engine, and for the reference
  };

  ConstTensorView weight(Projection which) const;

  const MultiHeadAttentionConfig& config_;
  const Parameters& parameters_;
  std::unique_ptr<Packed> packed_ = std::make_unique<Packed>();
};

// y = x · Wᵀ + bias for x (B, L, K) and y (B, L, N), in as few products as their strides allow: one, unless tokens of
// different batch rows lie unevenly.
struct TokenProduct {
  const PackedMatrix& matrix;
  ProductOptions options;

  void operator()(const ConstTensorView& x, const TensorView& y) const;
  std::size_t workspace_bytes(const ConstTensorView& x, const TensorView& y) const;
};

}  // namespace rapt::nn
