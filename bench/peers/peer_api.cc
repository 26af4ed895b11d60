// rapt as its peers' benchmark calls it: one C function over plain pointers, loaded by compare.py, so that rapt and
// its peers take turns in one process.
#include <cstdint>
#include <exception>
#include <string>

#include "rapt/attention.h"
#include "rapt/cpu.h"

extern "C" {

// compare.py declares the same fields in the same order. Everything is f32, contiguous and (B, H, L, D).
struct RaptPeerCall {
  const float* query;
  const float* key;
  const float* value;
  float* out;
  const void* mask;  // null, or (B, Hq, Lq, Lk), or (Lq, Lk): bool (true is kept) or float (added)
  std::int64_t batch, heads, kv_heads, queries, keys, dim;
  std::int64_t window_left, window_right;  // −1: open
  std::int32_t causal;
  std::int32_t mask_is_bool;
  std::int32_t mask_is_full;
  std::int32_t threads;
};

// Null, or what went wrong (until this thread's next call).
const char* rapt_peer_attention(const RaptPeerCall* call) {
  static thread_local std::string message;
  try {
    const RaptPeerCall& c = *call;
    rapt::AttentionOptions options{.causal = c.causal != 0};
    if (c.window_left >= 0) options.window.left = c.window_left;
    if (c.window_right >= 0) options.window.right = c.window_right;
    options.alignment = rapt::Alignment::bottom_right();
    options.threads = c.threads;
    if (c.mask != nullptr) {
      const rapt::Dims shape =
          c.mask_is_full != 0 ? rapt::Dims{c.batch, c.heads, c.queries, c.keys} : rapt::Dims{1, 1, c.queries, c.keys};
      const rapt::DType dtype = c.mask_is_bool != 0 ? rapt::DType::boolean : rapt::DType::f32;
      const rapt::ConstTensorView mask(c.mask, dtype, shape);
      options.masks.push_back(c.mask_is_bool != 0 ? rapt::Mask::keep(mask) : rapt::Mask::add(mask));
    }
    rapt::AttentionOutputs outputs;
    outputs.out = rapt::TensorView(c.out, {c.batch, c.heads, c.queries, c.dim});
    rapt::attention(outputs, rapt::ConstTensorView(c.query, {c.batch, c.heads, c.queries, c.dim}),
                    rapt::ConstTensorView(c.key, {c.batch, c.kv_heads, c.keys, c.dim}),
                    rapt::ConstTensorView(c.value, {c.batch, c.kv_heads, c.keys, c.dim}), options);
    return nullptr;
  } catch (const std::exception& error) {
    message = error.what();
    return message.c_str();
  }
}

const char* rapt_peer_instruction_set() {
  static const std::string name = [] {
    for (const rapt::InstructionSetInfo& each : rapt::instruction_sets()) {
      if (each.in_use) return each.name;
    }
    return std::string("none");
  }();
  return name.c_str();
}

}  // extern "C"
