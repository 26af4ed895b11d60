// Whether two tensors share memory.
#pragma once

#include <cstdint>

#include "rapt/tensor.h"

namespace rapt {

// The addresses from a tensor's first byte to one past its last; empty if it has no elements.
struct ByteRange {
  std::uintptr_t begin = 0, end = 0;

  // A fast first check, because the address ranges of two tensors nearly always do not intersect.
  bool meets(const ByteRange& other) const { return begin < other.end && other.begin < end; }
};
ByteRange byte_range(const void* data, DType dtype, const Dims& shape, const Dims& strides);
inline ByteRange byte_range(const ConstTensorView& tensor) {
  return byte_range(tensor.data(), tensor.dtype(), tensor.shape(), tensor.strides());
}

// Whether some byte belongs to elements of both tensors. Exact for tensors that interleave, such as q, k and v in one
// (B, L, 3, H, D) tensor. The search is bounded, and strides that it cannot decide within the bound count as overlap.
// This happens only with strides that do not nest; they nest if each stride spans all elements of the dimensions with
// smaller strides.
bool overlap(const ConstTensorView& a, const ConstTensorView& b);

}  // namespace rapt
