// The scratch memory of a layer, reused between calls.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "core/arena.h"
#include "core/engine.h"
#include "core/memory.h"
#include "rapt/multi_head_attention.h"

namespace rapt {

// Aligned memory of one device that only grows. Growing, or changing the device, discards the contents.
class GrowingBytes {
 public:
  std::span<std::byte> at_least(std::size_t bytes, Device where = {}) {
    if (bytes > size_ || where != device()) {
      memory_.reset();  // before allocating, so that old and new memory need not fit at once
      size_ = 0;
      memory_ = core::allocate(bytes, where);
      size_ = bytes;
    }
    return {memory_.get(), bytes};
  }
  std::span<std::byte> all() const { return {memory_.get(), size_}; }
  Device device() const { return memory_.get_deleter().device; }
  std::size_t bytes() const { return size_; }
  std::size_t device_bytes() const { return device().kind == Device::Kind::cpu ? 0 : size_; }

 private:
  core::Bytes memory_;
  std::size_t size_ = 0;
};

// Memory for plans, which are run one after the other.
struct Scratch {
  GrowingBytes host, device;

  Buffers at_least(const Sizes& sizes, Device where) {
    Buffers buffers;
    if (sizes.host > 0) buffers.host = host.at_least(sizes.host);
    if (sizes.device > 0) buffers.device = device.at_least(sizes.device, where);
    return buffers;
  }
};

// Lists keep their capacity, so assigning to them does not allocate. Activations and gradients are on the device of the
// call, lists on the host.
struct LayerWorkspace::Memory {
  GrowingBytes activations;    // q, k, v and the heads' output
  GrowingBytes lists;          // of attention's problem
  Scratch scratch;             // of products and attention, one after the other
  GrowingBytes gradients;      // of the activations
  GrowingBytes upstream;       // upstream gradients, converted or after dropout
  AttentionOptions attention;  // the caller's, with the layer's additions
  AttentionOutputs outputs;
  AttentionUpstream attention_upstream;
  AttentionGradients attention_gradients;
  std::vector<Tensor> wide_masks;       // masks with columns for added keys
  std::vector<std::int64_t> positions;  // of tokens, for rotary embedding
  // With a cache, for each batch row: its sequence, its new tokens, and the tokens cached before.
  std::vector<std::int64_t> sequences, tokens, starts;
  CacheView cached;

  std::array<const GrowingBytes*, 6> all() const {
    return {&activations, &lists, &scratch.host, &scratch.device, &gradients, &upstream};
  }
};

}  // namespace rapt
