#include "cuda/tensor_map.h"

#include <cudaTypedefs.h>
#include <cuda_runtime_api.h>

#include "cuda/errors.h"

namespace rapt::cuda {

namespace {

constexpr std::int64_t kElement = 2;                // bytes
constexpr std::int64_t kAlignment = 16;             // bytes, of the base and of strides
constexpr std::int64_t kLargestStride = 1LL << 40;  // bytes

bool stride_fits(std::int64_t stride, std::int64_t size) {
  return size <= 1 || (stride > 0 && stride * kElement % kAlignment == 0 && stride * kElement < kLargestStride);
}

// The driver's function, obtained through the runtime so that the library does not link libcuda.
PFN_cuTensorMapEncodeTiled_v12000 encoder(int device) {
  static const PFN_cuTensorMapEncodeTiled_v12000 encode = [device] {
    void* function = nullptr;
    cudaDriverEntryPointQueryResult found{};
    require(cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &function, 12000, cudaEnableDefault, &found),
            "cudaGetDriverEntryPointByVersion", device);
    return reinterpret_cast<PFN_cuTensorMapEncodeTiled_v12000>(function);
  }();
  return encode;
}

}  // namespace

bool can_copy_in_place(const DeviceTensor& view, const TensorSizes& sizes) {
  return reinterpret_cast<std::uintptr_t>(view.data) % kAlignment == 0 && (view.element == 1 || sizes.elements == 1) &&
         stride_fits(view.row, sizes.rows) && stride_fits(view.head, sizes.heads) &&
         stride_fits(view.batch, sizes.batch);
}

CUtensorMap map_tensor(const DeviceTensor& view, const TensorSizes& sizes, int box_rows, int box_heads, int device) {
  const auto bytes = [](std::int64_t stride, std::int64_t size) {
    return static_cast<cuuint64_t>(size > 1 ? stride * kElement : kAlignment);  // any stride will do if the size is 1
  };
  const cuuint64_t dims[4] = {static_cast<cuuint64_t>(sizes.elements), static_cast<cuuint64_t>(sizes.rows),
                              static_cast<cuuint64_t>(sizes.heads), static_cast<cuuint64_t>(sizes.batch)};
  const cuuint64_t strides[3] = {bytes(view.row, sizes.rows), bytes(view.head, sizes.heads),
                                 bytes(view.batch, sizes.batch)};
  const cuuint32_t box[4] = {64, static_cast<cuuint32_t>(box_rows), static_cast<cuuint32_t>(box_heads), 1};
  const cuuint32_t every[4] = {1, 1, 1, 1};
  CUtensorMap map;
  const CUresult result = encoder(device)(
      &map, view.dtype == DType::bf16 ? CU_TENSOR_MAP_DATA_TYPE_BFLOAT16 : CU_TENSOR_MAP_DATA_TYPE_FLOAT16, 4,
      view.data, dims, strides, box, every, CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B,
      CU_TENSOR_MAP_L2_PROMOTION_L2_256B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  require(result == CUDA_SUCCESS ? cudaSuccess : cudaErrorInvalidValue, "cuTensorMapEncodeTiled", device);
  return map;
}

}  // namespace rapt::cuda
