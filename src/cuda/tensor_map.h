// Views as descriptors of the copy engine (TMA).
#pragma once

#include <cuda.h>

#include "cuda/arguments.h"

namespace rapt::cuda {

// Sizes of a (B, H, L, D) tensor.
struct TensorSizes {
  std::int64_t batch, heads, rows, elements;
};

// Whether the copy engine can read a view of 16-bit elements in place: the last stride is 1, the address and the other
// strides are multiples of 16 bytes, and these strides are positive and below 2^40 bytes. A dimension of size 1 may
// have any stride. Other views are packed first (cuda/rows_setup.h).
bool can_copy_in_place(const DeviceTensor& view, const TensorSizes& sizes);

// The map of a view of 16-bit elements that can be copied in place, in boxes of 64 elements × box_rows rows × box_heads
// heads, with the 128-byte swizzle. Boxes may reach past the view's end; elements there are read as 0.
CUtensorMap map_tensor(const DeviceTensor& view, const TensorSizes& sizes, int box_rows, int box_heads, int device);

}  // namespace rapt::cuda
