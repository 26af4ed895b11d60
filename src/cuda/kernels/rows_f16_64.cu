#include "cuda/rows.cuh"

namespace rapt::cuda {
RowsKernel rows_f16_64(bool general) { return rows_instantiation<F16, 64>(general); }
}  // namespace rapt::cuda
