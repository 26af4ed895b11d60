// Counts heap allocations and their size, and simulates an exhausted heap.
#pragma once

#include <cstdint>

#include "support/sanitizers.h"

namespace rapt::test {

// Nothing is counted under a sanitizer, which has its own malloc, or with a C library other than glibc.
#if defined(__GLIBC__)
inline constexpr bool kCountsAllocations = !kAddressSanitizer && !kThreadSanitizer;
#else
inline constexpr bool kCountsAllocations = false;
#endif

// The number of calls of malloc and related functions, including those by operator new, on any thread since the process
// started.
std::int64_t allocation_count();
// The total number of bytes that they requested.
std::int64_t allocated_bytes();

// While an object exists, the next `more` allocations of this thread succeed, and later ones fail.
class HeapWithRoomFor {
 public:
  explicit HeapWithRoomFor(std::int64_t more);
  HeapWithRoomFor(const HeapWithRoomFor&) = delete;
  HeapWithRoomFor& operator=(const HeapWithRoomFor&) = delete;
  ~HeapWithRoomFor();
};

}  // namespace rapt::test
