// Rows of q, k, v and their gradients in memory, of any type and stride, paged or not.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>

#include "cuda/arguments.h"
#include "cuda/elements.cuh"

namespace rapt::cuda {

// One row: D or Dv elements.
struct MemoryRow {
  const void* data = nullptr;
  std::int64_t step = 1;  // between elements
  DType dtype = DType::f32;
  float scale = 1.0F;  // of an i8 row: an element is x · scale, rounded to f32

  RAPT_HOST_DEVICE float operator[](std::int32_t d) const {
    const float x = load_float(data, dtype, d * step);
    return dtype == DType::i8 ? x * scale : x;
  }
};

inline constexpr int kColumns = 8;  // elements that are loaded at once

// Consecutive elements of a row.
struct Columns {
  float x[kColumns] = {};
};

// The bytes of kColumns elements, at an address that is aligned to 16 bytes, or to their size if that is less.
template <std::size_t kBytes>
struct alignas(kBytes < 16 ? kBytes : 16) Packed {
  std::uint32_t words[kBytes / 4];
};

template <std::size_t kBytes>
RAPT_HOST_DEVICE Packed<kBytes> load_packed(const void* address) {
  using Bytes = Packed<kBytes>;
#if defined(__CUDA_ARCH__)
  return *static_cast<const Bytes*>(address);
#else
  Bytes bytes;
  std::memcpy(&bytes, address, sizeof(bytes));
  return bytes;
#endif
}

// Elements d … d + 7, all of which exist. Contiguous rows at aligned addresses are read in one or two instructions.
RAPT_HOST_DEVICE Columns load_columns(const MemoryRow& row, std::int32_t d) {
  Columns columns;
  const std::size_t size = row.dtype == DType::f32 ? 4 : row.dtype == DType::i8 ? 1 : 2;
  const char* address = static_cast<const char*>(row.data) + static_cast<std::int64_t>(size) * d * row.step;
  const std::size_t alignment = row.dtype == DType::i8 ? 8 : 16;
  if (row.step != 1 || reinterpret_cast<std::uintptr_t>(address) % alignment != 0) {
    for (int n = 0; n < kColumns; ++n) columns.x[n] = row[d + n];
    return columns;
  }
  if (row.dtype == DType::f32) {
    const auto bytes = load_packed<32>(address);
    for (int n = 0; n < kColumns; ++n) columns.x[n] = float_from_bits(bytes.words[n]);
  } else if (row.dtype == DType::i8) {
    const auto bytes = load_packed<8>(address);
    for (int n = 0; n < kColumns; ++n) {
      const auto byte = static_cast<std::int8_t>(bytes.words[n / 4] >> (n % 4 * 8));
      columns.x[n] = static_cast<float>(byte) * row.scale;
    }
  } else {
    const auto bytes = load_packed<16>(address);
    for (int n = 0; n < kColumns; ++n) {
      const auto half = static_cast<std::uint16_t>(bytes.words[n / 2] >> (n % 2 * 16));
      columns.x[n] = row.dtype == DType::bf16 ? bf16_to_float(half) : f16_to_float(half);
    }
  }
  return columns;
}

// a · b: one chain, d ascending.
RAPT_HOST_DEVICE float dot(const MemoryRow& a, const MemoryRow& b, std::int32_t size) {
  float sum = 0.0F;
  std::int32_t d = 0;
  for (; d + kColumns <= size; d += kColumns) {
    const Columns of_a = load_columns(a, d);
    const Columns of_b = load_columns(b, d);
    for (int n = 0; n < kColumns; ++n) sum = fmaf(of_a.x[n], of_b.x[n], sum);
  }
  for (; d < size; ++d) sum = fmaf(a[d], b[d], sum);
  return sum;
}

RAPT_HOST_DEVICE MemoryRow memory_row(const DeviceTensor& tensor, std::int64_t b, std::int64_t h, std::int64_t l) {
  const std::int64_t size = tensor.dtype == DType::f64   ? 8
                            : tensor.dtype == DType::f32 ? 4
                            : tensor.dtype == DType::i8  ? 1
                                                         : 2;
  return {static_cast<const char*>(tensor.data) + tensor.offset(b, h, l) * size, tensor.element, tensor.dtype};
}

// Row j of k or v of a sequence; j is less than its key_count.
RAPT_HOST_DEVICE MemoryRow kv_row(const Arguments& call, const DeviceTensor& tensor, const DeviceTensor& scales,
                                  const Sequence& sequence, std::int32_t kv_head, std::int32_t j) {
  std::int64_t b = sequence.batch;
  std::int64_t l = std::int64_t{sequence.key_begin} + j;
  if (call.paged) {
    b = call.page(b * call.pages_per_row + (j >> call.page_shift));
    l = j & ((std::int32_t{1} << call.page_shift) - 1);
  }
  MemoryRow row = memory_row(tensor, b, kv_head, l);
  if (scales.data != nullptr) row.scale = static_cast<const float*>(scales.data)[scales.offset(b, kv_head, l)];
  return row;
}

}  // namespace rapt::cuda
