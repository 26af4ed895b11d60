// A matrix packed for an engine, with its memory. Validation is up to the callers: rapt::PackedMatrix and layers.
#pragma once

#include <cstddef>

#include "core/engine.h"
#include "core/memory.h"

namespace rapt {

class EngineMatrix {
 public:
  // `weights` is (N, K), with any strides, on the engine's device. The packed matrix is on the same device, stored as
  // `dtype`.
  EngineMatrix(const EngineRow& engine, const ConstTensorView& weights, DType dtype, const Workers& workers)
      : engine_(&engine),
        weights_{weights.size(0), weights.size(1), dtype, engine.variant(), nullptr},
        bytes_(engine.product.packed_bytes(weights_)),
        memory_(core::allocate(bytes_, weights.device())) {
    weights_.data = memory_.get();
    engine.product.pack(weights, weights_, workers);
  }

  const EngineRow& engine() const { return *engine_; }
  Device device() const { return memory_.get_deleter().device; }
  const PackedWeights& weights() const { return weights_; }
  std::size_t bytes() const { return bytes_; }  // of the packed data

 private:
  const EngineRow* engine_;
  PackedWeights weights_;
  std::size_t bytes_;
  core::Bytes memory_;
};

}  // namespace rapt
