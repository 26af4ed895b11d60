// Small kernels that run before the rows kernel: they prepare its workspace.
#pragma once

#include <cstdint>
#include <span>

#include "cuda/launch.h"
#include "cuda/rows_plan.h"
#include "cuda/tensor_map.h"

namespace rapt::cuda {

// Sets the tile counter to 0.
void clear_counter(std::int32_t* counter, const Launch& launch);

// Copies a list to the device. The list is passed in kernel parameters, so the call may be captured in a graph, and the
// list may be freed when the function returns.
void upload_tiles(std::span<const TileEntry> list, TileEntry* to, const Launch& launch);

// The distance between rows of a packed tensor, in elements: rows begin at multiples of 16 bytes.
RAPT_HOST_DEVICE constexpr std::int64_t packed_row(std::int64_t elements) { return (elements + 7) / 8 * 8; }

// Copies a view of 16-bit elements with any strides to `to`, contiguous except for the padding of rows, which is not
// written. Returns the packed view.
DeviceTensor pack_tensor(const DeviceTensor& view, const TensorSizes& sizes, void* to, const Launch& launch);

}  // namespace rapt::cuda
