// Constants on which the bits of a result depend. Changing one changes the bits of every call.
#pragma once

#include <cstdint>

namespace rapt::cuda {

// For the plain kernels. The keys of a row form chunks at absolute multiples of this constant: each has its own
// maximum, sum and output, and chunks are merged in ascending order. The sum of a chunk is made of 32 partial sums.
// Number n adds keys n, n + 32, … in ascending order; then partial sums 16, 8, 4, 2 and 1 apart are added in pairs.
inline constexpr std::int32_t kPlainChunk = 256;

}  // namespace rapt::cuda
