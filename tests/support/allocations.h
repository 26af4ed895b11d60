// Counts heap allocations and their size, and simulates an exhausted heap.
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

// While it lives, this thread gets memory `more` times, and then none.
class HeapWithRoomFor {
 public:
  explicit HeapWithRoomFor(std::int64_t more);
  HeapWithRoomFor(const HeapWithRoomFor&) = delete;
  HeapWithRoomFor& operator=(const HeapWithRoomFor&) = delete;
  ~HeapWithRoomFor();
};

}  // namespace rapt::test
