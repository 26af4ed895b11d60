#include "cuda/rows.cuh"

namespace rapt::cuda {
RowsKernel rows_bf16_64(bool general) { return rows_instantiation<Bf16, 64>(general); }
}  // namespace rapt::cuda
