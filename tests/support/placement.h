// The memory layouts that vector cases name: the same (B, H, L, D) tensor with other strides.
#pragma once

#include <array>
#include <string>

#include "rapt/tensor.h"

namespace rapt::test {

// A view of shape (B, H, L, D) and the memory behind it.
struct Placed {
  Tensor memory;
  TensorView view;
};

// Memory for a tensor of `shape` (B, H, L, D), not yet written. Layouts:
//   bhld      contiguous
//   blhd      (B, L, H, D), transposed
//   lbe       (L, B, E), transposed and split into heads
//   padded    a window in a larger tensor whose rest is NaN
//   reversed  tokens and features backwards in memory: negative strides
Placed place(const Dims& shape, DType dtype, const std::string& layout);

// The three parts of one (B, L, 3, H, D) tensor, for layout packed_qkv; in other layouts, three separate tensors.
struct PlacedQkv {
  std::array<Tensor, 3> memory;
  std::array<TensorView, 3> views;
};
PlacedQkv place_qkv(const std::array<Dims, 3>& shapes, const std::array<DType, 3>& dtypes, const std::string& layout);

}  // namespace rapt::test
