#include "cuda/rows.cuh"

namespace rapt::cuda {
RowsKernel rows_f16_256(bool general) { return rows_instantiation<F16, 256>(general); }
}  // namespace rapt::cuda
