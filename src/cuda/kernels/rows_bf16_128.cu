#include "cuda/rows.cuh"

namespace rapt::cuda {
RowsKernel rows_bf16_128(bool general) { return rows_instantiation<Bf16, 128>(general); }
}  // namespace rapt::cuda
