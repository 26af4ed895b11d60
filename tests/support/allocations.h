// Counts what the process allocates through operator new.
#pragma once

#include <cstdint>

#include "support/sanitizers.h"

namespace rapt::test {

// A sanitizer brings its own operator new, which is not to be replaced.
inline constexpr bool kCountsAllocations = !kAddressSanitizer && !kThreadSanitizer;

// Since the program started, on all threads.
std::int64_t allocation_count();

}  // namespace rapt::test
