// The functions that the launch of the rows kernel (cuda/rows.cc) calls: those of the CUDA runtime, those that map
// tensors for the copy engine, and the small kernels that prepare the workspace.

#include <algorithm>
#include <cuda_runtime_api.h>
#include <string>

#include "cuda/errors.h"
#include "cuda/rows_arguments.h"
#include "cuda/rows_setup.h"
#include "cuda/tensor_map.h"
#include "cuda/wgmma.cuh"
#include "emulated/block.h"
#include "emulated/rows_engine.h"
#include "rapt/error.h"

namespace {

int allowed_bytes = 48 << 10;  // of shared memory

}  // namespace

cudaError_t cudaFuncSetAttribute(const void* /*kernel*/, cudaFuncAttribute /*attribute*/, int value) {
  allowed_bytes = value;
  return cudaSuccess;
}

// Runs one block after another. So the first block takes every tile that the counter hands out, as if the other blocks
// were slow.
cudaError_t cudaLaunchKernel(const void* kernel, dim3 blocks, dim3 threads, void** parameters, std::size_t shared_bytes,
                             cudaStream_t /*stream*/) {
  namespace cuda = rapt::cuda;
  if (shared_bytes > rapt::test::kSharedBytes || shared_bytes > static_cast<std::size_t>(allowed_bytes)) {
    throw rapt::Error("a block asks for " + std::to_string(shared_bytes) + " bytes of shared memory");
  }
  const auto function = reinterpret_cast<void (*)(cuda::RowsArguments)>(const_cast<void*>(kernel));
  const auto& arguments = *static_cast<const cuda::RowsArguments*>(parameters[0]);
  cuda::gridDim.x = blocks.x;
  for (cuda::blockIdx.x = 0; cuda::blockIdx.x < blocks.x; ++cuda::blockIdx.x) {
    cuda::emulate_block();
    rapt::test::run_block(
        static_cast<int>(threads.x), [&] { function(arguments); }, rapt::test::emulated_order + cuda::blockIdx.x);
  }
  return cudaSuccess;
}

namespace rapt::cuda {

void require(int code, const char* call, int /*device*/) {
  if (code != cudaSuccess) throw Error(call);
}

bool can_copy_in_place(const DeviceTensor& view, const TensorSizes& sizes) {
  const auto fits = [](std::int64_t stride, std::int64_t size) { return size <= 1 || (stride > 0 && stride % 8 == 0); };
  return reinterpret_cast<std::uintptr_t>(view.data) % 16 == 0 && (view.element == 1 || sizes.elements == 1) &&
         fits(view.row, sizes.rows) && fits(view.head, sizes.heads) && fits(view.batch, sizes.batch);
}

CUtensorMap map_tensor(const DeviceTensor& view, const TensorSizes& sizes, int box_rows, int box_heads,
                       int /*device*/) {
  return {view, sizes.batch, sizes.heads, sizes.rows, sizes.elements, box_rows, box_heads};
}

void clear_counter(std::int32_t* counter, const Launch& /*launch*/) { *counter = 0; }

void upload_tiles(std::span<const TileEntry> list, TileEntry* to, const Launch& /*launch*/) {
  std::copy(list.begin(), list.end(), to);
}

DeviceTensor pack_tensor(const DeviceTensor& view, const TensorSizes& sizes, void* to, const Launch& /*launch*/) {
  const std::int64_t row = packed_row(sizes.elements);
  DeviceTensor packed{to, sizes.heads * sizes.rows * row, sizes.rows * row, row, 1, view.dtype};
  for (std::int64_t b = 0; b < sizes.batch; ++b) {
    for (std::int64_t h = 0; h < sizes.heads; ++h) {
      for (std::int64_t l = 0; l < sizes.rows; ++l) {
        for (std::int64_t d = 0; d < sizes.elements; ++d) {
          static_cast<std::uint16_t*>(to)[packed.offset(b, h, l, d)] =
              static_cast<const std::uint16_t*>(view.data)[view.offset(b, h, l, d)];
        }
      }
    }
  }
  return packed;
}

}  // namespace rapt::cuda
