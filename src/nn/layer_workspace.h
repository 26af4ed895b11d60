// The scratch memory of a layer, reused between calls.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "core/arena.h"
#include "core/memory.h"
#include "rapt/multi_head_attention.h"

namespace rapt {

// Aligned bytes that only grow. What they held is gone when they do.
class GrowingBytes {
 public:
  std::span<std::byte> at_least(std::size_t bytes) {
    if (bytes > size_) {
      memory_.reset();  // before the new memory is there: both need not fit
      size_ = 0;
      memory_ = core::allocate(bytes);
      size_ = bytes;
    }
    return {memory_.get(), bytes};
  }
  std::span<std::byte> all() const { return {memory_.get(), size_}; }

 private:
  core::Bytes memory_;
  std::size_t size_ = 0;
};

// Lists keep their room, so assigning to them takes nothing from the heap.
struct LayerWorkspace::Memory {
  GrowingBytes activations;    // q, k, v and the heads' output
  GrowingBytes lists;          // of attention's problem
  GrowingBytes scratch;        // of products and attention, one after the other
  GrowingBytes gradients;      // of the activations
  GrowingBytes upstream;       // what arrives, converted or dropped
  AttentionOptions attention;  // the caller's, and what the layer adds
  AttentionOutputs outputs;
  AttentionUpstream attention_upstream;
  AttentionGradients attention_gradients;
  std::vector<Tensor> wide_masks;       // masks with columns for added keys
  std::vector<std::int64_t> positions;  // of tokens, for rotary embedding
  // With a cache, for each batch row: its sequence, the tokens it brings, and those that were there before.
  std::vector<std::int64_t> sequences, tokens, starts;
  CacheView cached;
};

}  // namespace rapt
