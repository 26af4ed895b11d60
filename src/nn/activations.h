// The intermediate tensors of a layer and their memory: activations in forward, and their gradients in backward, with
// the same layout.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "core/arena.h"
#include "nn/layer_call.h"
#include "nn/layer_workspace.h"
#include "nn/parameters.h"

namespace rapt::nn {

// Intermediate tensors are f32 even if the parameters are 16-bit, so that the results are rounded only once.
inline DType type_between_steps(const MultiHeadAttentionConfig& config) {
  return config.dtype == DType::f64 ? DType::f64 : DType::f32;
}

// Shapes are (B, L, …). In memory, tokens have the caller's order, so that one product can process them all. The added
// keys come before the caller's keys (added_keys.h).
class Activations {
 public:
  Activations() = default;
  // `memory` has bytes(call) bytes, aligned, on the call's device.
  Activations(const LayerCall& call, std::span<std::byte> memory) : added_keys(call.added_keys) {
    const Widths widths(call.config, call.config.slice.count);
    const std::int64_t keys = added_keys + call.key_length();
    const DType type = type_between_steps(call.config);
    const Device device = call.device();
    Arena arena(memory);
    const auto tokens = [&](std::int64_t length, std::int64_t width) {
      const std::int64_t batch = call.batch();
      void* data = arena.take<std::byte>(batch * length * width * static_cast<std::int64_t>(size_of(type))).data();
      if (call.config.batch_first) return TensorView(data, type, {batch, length, width}, device);
      return TensorView(data, type, {length, batch, width}, device).transpose(0, 1);
    };
    if (is_packed(call)) {
      qkv = tokens(keys, widths.all());
      q = given(qkv.slice(2, 0, widths.query));
      kv = qkv.slice(2, widths.query, widths.all());
    } else {
      q = tokens(call.query_length(), widths.query);
      kv = tokens(keys, 2 * widths.key);
    }
    k = kv.slice(2, 0, widths.key);
    v = kv.slice(2, widths.key, 2 * widths.key);
    combined = tokens(call.query_length(), widths.query);
    lse = TensorView(
        arena
            .take<std::byte>(call.batch() * call.heads * call.query_length() * static_cast<std::int64_t>(size_of(type)))
            .data(),
        type, {call.batch(), call.heads, call.query_length()}, device);
  }

  static std::size_t bytes(const LayerCall& call) {
    const Widths widths(call.config, call.config.slice.count);
    const std::int64_t keys = call.added_keys + call.key_length();
    const std::int64_t inputs =
        is_packed(call) ? keys * widths.all() : call.query_length() * widths.query + keys * 2 * widths.key;
    const std::int64_t outputs = call.query_length() * (widths.query + call.heads);
    return static_cast<std::size_t>(call.batch() * (inputs + outputs)) * size_of(type_between_steps(call.config)) +
           5 * Arena::kAlignment;
  }

  // Without the added keys.
  TensorView given(const TensorView& all) const {
    return added_keys == 0 ? all : all.slice(1, added_keys, all.size(1));
  }

  TensorView qkv;       // (B, added + L, all), if one product computes all three
  TensorView q, kv;     // (B, Lq, Hq·D), (B, added + Lk, 2·Hkv·D)
  TensorView k, v;      // (B, added + Lk, Hkv·D)
  TensorView combined;  // (B, Lq, Hq·D): the heads concatenated
  TensorView lse;       // (B, Hq, Lq)
  std::int64_t added_keys = 0;

 private:
  static bool is_packed(const LayerCall& call) { return call.one_input && !call.config.separate_projections; }
};

}  // namespace rapt::nn

namespace rapt {

struct LayerActivations::Memory {
  GrowingBytes bytes;
  // The shapes of the forward call that filled the memory; backward requires the same shapes.
  bool filled = false;
  Dims query{}, key{};
  bool one_input = false;
};

}  // namespace rapt
