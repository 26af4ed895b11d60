#include "cuda/rows.cuh"

namespace rapt::cuda {
RowsKernel rows_bf16_256(bool general) { return rows_instantiation<Bf16, 256>(general); }
}  // namespace rapt::cuda
