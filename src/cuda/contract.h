// A constant on which the bits of results depend: with another value, the plain kernels give other bits.
#pragma once

#include <cstdint>

namespace rapt::cuda {

// The keys of a row form chunks that begin at multiples of this constant. Each chunk has its own maximum, sum and
// output, and chunks are merged in ascending order. The sum of a chunk consists of 32 partial sums. Partial sum n adds
// keys n, n + 32, … of the chunk in ascending order; then partial sums 16, 8, 4, 2 and 1 apart are added in pairs.
inline constexpr std::int32_t kPlainChunk = 256;

}  // namespace rapt::cuda
