// One call of a layer after validation: tensors in the canonical order, and the requested outputs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "attention/checks.h"
#include "rapt/multi_head_attention.h"

namespace rapt::nn {

inline constexpr const char* kForward = "MultiHeadAttention::forward";  // the prefix of errors

// The config with every default filled in. Throws if it is invalid.
MultiHeadAttentionConfig checked_config(const MultiHeadAttentionConfig& config);

// (L, E), (B, L, E) or (L, B, E) as (B, L, E).
ConstTensorView canonical(const ConstTensorView& x, bool batch_first);
TensorView canonical(const TensorView& x, bool batch_first);

// The shapes of the results of a call, in the caller's order of dimensions.
struct LayerShapes {
  Dims out;
  Dims weights;  // rank 0 if not requested
  Dims lse;
};

struct LayerCall {
  // Checks everything that can be checked before the first product. `key` and `value` may be undefined. `device` is the
  // layer's.
  LayerCall(const MultiHeadAttentionConfig& config, Device device, const ConstTensorView& query,
            const ConstTensorView& key, const ConstTensorView& value, const LayerOptions& options,
            const char* function = kForward);

  LayerShapes shapes() const;
  // Checks and stores the outputs.
  void write_to(const LayerOutputs& outputs);

  Device device() const { return query.device(); }
  std::int64_t batch() const { return query.size(0); }
  std::int64_t query_length() const { return query.size(1); }
  std::int64_t key_length() const { return key.size(1); }
  // For a call with a cache: the sequence of batch row b, and the number of its new tokens.
  std::int64_t sequence(std::int64_t b) const {
    return options.sequences.empty() ? b : options.sequences[static_cast<std::size_t>(b)];
  }
  std::int64_t new_tokens(std::int64_t b) const {
    const std::vector<std::int64_t>& lengths = options.attention.key_lengths;
    return lengths.empty() ? key_length() : lengths[static_cast<std::size_t>(b)];
  }

  const MultiHeadAttentionConfig& config;
  const LayerOptions& options;
  ConstTensorView query, key, value;  // (B, L, E), whatever order the caller used
  bool one_input = false;             // query, key and value are one tensor
  bool one_memory = false;            // key and value are one tensor
  bool batched = true;
  std::int64_t heads, kv_heads;       // of this slice
  std::int64_t added_keys;            // by add_bias_kv and add_zero_attention
  std::int64_t all_keys = 0;          // of the longest batch row, including cached keys but not added ones
  TensorView out;                     // (B, Lq, O)
  TensorView weights;                 // (B, Lq, Lk) or (B, Hq, Lq, Lk); undefined: not requested
  TensorView lse;                     // (B, Hq, Lq); undefined: not requested
  std::span<const Capture> captures;  // the caller's, checked

  // Adds a batch dimension to the caller's tensors if they have none.
  TensorView with_batch(const TensorView& given) const { return batched ? given : given.unsqueeze(0); }

 private:
  void check_options(const Checks& checks) const;
  void check_cache(const Checks& checks);
  Dims capture_shape(const Selection& of) const;
  Dims without_missing_batch(const Dims& shape) const;
};

}  // namespace rapt::nn
