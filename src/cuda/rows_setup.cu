#include <algorithm>

#include "cuda/errors.h"
#include "cuda/rows_setup.h"

namespace rapt::cuda {

namespace {

constexpr int kThreads = 256;

struct TileEntries {
  static constexpr int kCount = 3584;  // 28 KB of the 32 KB that kernel parameters may have

  TileEntry entries[kCount];
};

__global__ void store_tiles(const __grid_constant__ TileEntries list, TileEntry* to, int count) {
  for (int i = static_cast<int>(threadIdx.x); i < count; i += kThreads) to[i] = list.entries[i];
}

// One thread per 8 elements of a row.
__global__ void pack(DeviceTensor view, TensorSizes sizes, std::uint16_t* to) {
  const std::int64_t row_parts = packed_row(sizes.elements) / 8;
  const std::int64_t item = std::int64_t{blockIdx.x} * kThreads + threadIdx.x;
  if (item >= sizes.batch * sizes.heads * sizes.rows * row_parts) return;
  const std::int64_t row = item / row_parts, first = (item - row * row_parts) * 8;
  const std::int64_t plane = row / sizes.rows;
  const std::uint16_t* from = static_cast<const std::uint16_t*>(view.data) +
                              view.offset(plane / sizes.heads, plane % sizes.heads, row % sizes.rows, first);
  for (int i = 0; i < 8 && first + i < sizes.elements; ++i) to[item * 8 + i] = from[i * view.element];
}

}  // namespace

void clear_counter(std::int32_t* counter, const Launch& launch) {
  require(cudaMemsetAsync(counter, 0, sizeof(*counter), launch.stream), "cudaMemsetAsync", launch.device);
}

void upload_tiles(std::span<const TileEntry> list, TileEntry* to, const Launch& launch) {
  while (!list.empty()) {
    const std::size_t count = std::min<std::size_t>(list.size(), TileEntries::kCount);
    TileEntries entries;
    std::copy_n(list.data(), count, entries.entries);
    store_tiles<<<1, kThreads, 0, launch.stream>>>(entries, to, static_cast<int>(count));
    require_launched("store_tiles", launch.device);
    list = list.subspan(count);
    to += count;
  }
}

DeviceTensor pack_tensor(const DeviceTensor& view, const TensorSizes& sizes, void* to, const Launch& launch) {
  const std::int64_t row = packed_row(sizes.elements), rows = sizes.batch * sizes.heads * sizes.rows;
  const std::int64_t blocks = (rows * (row / 8) + kThreads - 1) / kThreads;
  pack<<<static_cast<unsigned>(blocks), kThreads, 0, launch.stream>>>(view, sizes, static_cast<std::uint16_t*>(to));
  require_launched("pack", launch.device);
  return {to, sizes.heads * sizes.rows * row, sizes.rows * row, row, 1, view.dtype};
}

}  // namespace rapt::cuda
