// Constants on which the bits of a result depend. To change one is to change the bits of every call.
#pragma once

#include <cstdint>

namespace rapt::cuda {

// Plain kernels. The keys of a row form chunks at absolute multiples of this constant: each starts with a maximum, a
// sum and an output of its own, and chunks are merged in ascending order. The sum of a chunk is that of 32 partial
// sums, number n of which adds keys n, n + 32, … in ascending order; they are added in pairs 16, 8, 4, 2 and 1 apart.
inline constexpr std::int32_t kPlainChunk = 256;

}  // namespace rapt::cuda
