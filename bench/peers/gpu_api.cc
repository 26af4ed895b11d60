// rapt for the comparison on a GPU: C functions that take device pointers, loaded by cuda_peers.py, so that rapt and
// PyTorch alternate in one process.
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "rapt/attention.h"
#include "rapt/cuda.h"

namespace {

// Runs `work`. Returns null, or an error message that is valid until this thread's next call.
const char* message_of(const std::function<void()>& work) {
  static thread_local std::string message;
  try {
    work();
    return nullptr;
  } catch (const std::exception& error) {
    message = error.what();
    return message.c_str();
  }
}

rapt::DType type_of(std::int32_t type) {
  constexpr rapt::DType kTypes[] = {rapt::DType::f32, rapt::DType::bf16, rapt::DType::f16, rapt::DType::boolean};
  return kTypes[type];
}

}  // namespace

extern "C" {

// cuda_peers.py declares the same fields in the same order. A tensor is (B, H, L, D), or (B, Hq, Lq, Lk) for a mask,
// with strides in elements; types: 0 f32, 1 bf16, 2 f16, 3 bool.
struct RaptGpuTensor {
  void* data;  // null: the tensor is absent
  std::int64_t sizes[4];
  std::int64_t strides[4];
  std::int32_t type;
};

struct RaptGpuCall {
  RaptGpuTensor query, key, value, out;
  RaptGpuTensor mask;  // bool: true keeps the key; other types are added
  void* lse;           // null, or f32 (B, Hq, Lq), contiguous
  void* stream;        // cudaStream_t
  void* workspace;     // null: the call allocates its own workspace
  std::size_t workspace_bytes;
  const std::int64_t* starts;  // null, or the starts of packed sequences, for both queries and keys
  std::int64_t starts_count;
  std::int64_t window_left, window_right;  // −1: open
  double dropout;
  std::uint64_t seed;
  std::int32_t causal;
  std::int32_t device;
};

}  // extern "C"

namespace {

rapt::TensorView view_of(const RaptGpuTensor& tensor, std::int32_t device) {
  if (tensor.data == nullptr) return {};
  return {tensor.data, type_of(tensor.type), rapt::Dims(std::span(tensor.sizes)), rapt::Dims(std::span(tensor.strides)),
          rapt::Device{rapt::Device::Kind::cuda, device}};
}

struct Call {
  explicit Call(const RaptGpuCall& c)
      : query(view_of(c.query, c.device)), key(view_of(c.key, c.device)), value(view_of(c.value, c.device)) {
    outputs.out = view_of(c.out, c.device);
    if (c.lse != nullptr) {
      outputs.lse = rapt::TensorView(c.lse, rapt::DType::f32, {query.size(0), query.size(1), query.size(2)},
                                     outputs.out.device());
    }
    options.causal = c.causal != 0;
    if (c.window_left >= 0) options.window.left = c.window_left;
    if (c.window_right >= 0) options.window.right = c.window_right;
    options.alignment = rapt::Alignment::bottom_right();
    if (const rapt::TensorView mask = view_of(c.mask, c.device); mask.defined()) {
      options.masks.push_back(mask.dtype() == rapt::DType::boolean ? rapt::Mask::keep(mask) : rapt::Mask::add(mask));
    }
    if (c.starts != nullptr) {
      const std::vector<std::int64_t> starts(c.starts, c.starts + c.starts_count);
      options.packed = {.query_starts = starts, .key_starts = starts};
    }
    options.dropout = {.rate = c.dropout, .seed = c.seed};
    options.stream = {c.stream};
    options.workspace = {static_cast<std::byte*>(c.workspace), c.workspace_bytes};
  }

  rapt::ConstTensorView query, key, value;
  rapt::AttentionOutputs outputs;
  rapt::AttentionOptions options;
};

}  // namespace

extern "C" {

// Returns as soon as the work is enqueued.
const char* rapt_gpu_attention(const RaptGpuCall* given) {
  return message_of([&] {
    const Call call(*given);
    rapt::attention(call.outputs, call.query, call.key, call.value, call.options);
  });
}

const char* rapt_gpu_workspace_bytes(const RaptGpuCall* given, std::size_t* bytes) {
  return message_of([&] {
    const Call call(*given);
    *bytes = rapt::attention_workspace_bytes(call.outputs, call.query, call.key, call.value, call.options);
  });
}

// Why there is no GPU, or an empty text.
const char* rapt_gpu_unavailable() {
  static const std::string reason = rapt::cuda::unavailable_because();
  return reason.c_str();
}

}  // extern "C"
