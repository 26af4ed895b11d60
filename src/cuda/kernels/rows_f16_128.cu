#include "cuda/rows.cuh"

namespace rapt::cuda {
RowsKernel rows_f16_128(bool general) { return rows_instantiation<F16, 128>(general); }
}  // namespace rapt::cuda
