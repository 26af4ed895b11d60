// The arguments that CUDA kernels take by value: one attention call as plain data.
//
// src/cuda/build_arguments.cc builds them from an AttentionProblem. Every pointer here is an address on the device. The
// lists of the call (sequences, masks, slopes, page table, selected heads and queries) are in one block of bytes, which
// is stored inside the arguments if it is short, and in the workspace otherwise. This header compiles with nvcc and,
// for the tests that run without a GPU, with any C++20 compiler.
#pragma once

#include <cstddef>
#include <cstdint>

#include "rapt/dtype.h"

#if defined(__CUDACC__)
#define RAPT_DEVICE __device__ __forceinline__
#define RAPT_HOST_DEVICE __host__ __device__ __forceinline__
#else
#define RAPT_DEVICE inline
#define RAPT_HOST_DEVICE inline
#endif

namespace rapt::cuda {

// A (B, H, L, D) tensor; strides are in elements. `data` is null where a call has no such tensor.
struct DeviceTensor {
  void* data = nullptr;
  std::int64_t batch = 0, head = 0, row = 0, element = 0;
  DType dtype = DType::f32;

  RAPT_HOST_DEVICE std::int64_t offset(std::int64_t b, std::int64_t h, std::int64_t l, std::int64_t d = 0) const {
    return b * batch + h * head + l * row + d * element;
  }
};

// SequenceSpan (core/problem.h) in 32-bit numbers.
struct Sequence {
  std::int32_t batch = 0, index = 0;
  std::int32_t query_begin = 0, query_count = 0;
  std::int32_t key_begin = 0, key_count = 0;
  std::int32_t offset = 0;
  std::int32_t unused = 0;
};

enum class MaskKind : std::uint8_t { keep, drop, add, fill };  // rapt::Mask::Kind

struct MaskTerm {
  DeviceTensor view;  // (B, Hq, Lq, Lk), broadcast by stride 0
  double value = 0.0;
  MaskKind kind = MaskKind::keep;
};

// Where the lists of a call begin: offsets in bytes within the block, which is aligned to 16 bytes.
struct Lists {
  static constexpr std::uint32_t kInline = 2048;

  const std::byte* in_workspace = nullptr;  // null: `bytes` holds the block
  std::uint32_t sequences = 0;              // Sequence[sequence_count]
  std::uint32_t masks = 0;                  // MaskTerm[mask_count]
  std::uint32_t slopes = 0;                 // float[query_heads], if has_alibi
  std::uint32_t pages = 0;                  // int32[batch · pages_per_row], if paged
  alignas(16) std::byte bytes[kInline] = {};

  RAPT_HOST_DEVICE const std::byte* block() const { return in_workspace != nullptr ? in_workspace : bytes; }
};

// ResolvedDropout (core/problem.h).
struct DropoutTerm {
  bool on = false;
  std::uint64_t threshold = 0;  // a weight is kept if its random 32-bit word is not below this
  float keep_scale = 1.0F;
  std::uint32_t key[2] = {0, 0};
  std::uint32_t batch_start = 0, head_start = 0, query_start = 0;
};

struct Arguments {
  DeviceTensor query, key, value, out;
  DeviceTensor key_scales, value_scales;  // (B, Hkv, Lk) or (P, Hkv, page size): `element` is 0
  DeviceTensor lse;                       // (B, Hq, Lq): `element` is 0
  DeviceTensor sinks;                     // (Hq): its stride is `head`

  std::int32_t batch = 0, query_heads = 0, kv_heads = 0, group = 1;
  std::int32_t queries = 0, keys = 0;  // Lq, Lk
  std::int32_t head_size = 0, value_size = 0;
  std::int32_t sequence_count = 0, mask_count = 0;

  float scale = 1.0F, softcap = 0.0F;
  // Causal and window combined: position p sees keys p − left … p + right.
  std::int64_t left = 0, right = 0;
  // In addition, position p sees the keys 0 … first_keys − 1, up to key p + right_of_first.
  std::int64_t first_keys = 0, right_of_first = 0;
  bool has_alibi = false;
  bool paged = false;
  std::int32_t pages_per_row = 0, page_shift = 0;  // a page holds 2^page_shift keys
  DropoutTerm dropout;
  Lists lists;

  RAPT_HOST_DEVICE const Sequence& sequence(std::int32_t n) const {
    return reinterpret_cast<const Sequence*>(lists.block() + lists.sequences)[n];
  }
  RAPT_HOST_DEVICE const MaskTerm& mask(std::int32_t n) const {
    return reinterpret_cast<const MaskTerm*>(lists.block() + lists.masks)[n];
  }
  RAPT_HOST_DEVICE float slope(std::int32_t head) const {
    return reinterpret_cast<const float*>(lists.block() + lists.slopes)[head];
  }
  RAPT_HOST_DEVICE std::int32_t page(std::int64_t n) const {
    return reinterpret_cast<const std::int32_t*>(lists.block() + lists.pages)[n];
  }
};
static_assert(sizeof(Arguments) <= 4000, "every GPU since Turing takes 4096 bytes of kernel parameters");

}  // namespace rapt::cuda
