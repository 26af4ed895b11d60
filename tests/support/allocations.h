// How often the process asked for heap memory, and for how much.
#pragma once

#include <cstdint>

#include "support/sanitizers.h"

namespace rapt::test {

// A sanitizer brings its own malloc, and so does a C library that is not glibc: there, nothing is counted.
#if defined(__GLIBC__)
inline constexpr bool kCountsAllocations = !kAddressSanitizer && !kThreadSanitizer;
#else
inline constexpr bool kCountsAllocations = false;
#endif

// Calls of malloc and its relatives, which operator new makes too, on any thread since the process began.
std::int64_t allocation_count();
// How many bytes they asked for, all together.
std::int64_t allocated_bytes();

}  // namespace rapt::test
