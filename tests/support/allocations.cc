#include "support/allocations.h"

#include <atomic>
#include <cerrno>
#include <cstdlib>

namespace rapt::test {
namespace {

constinit std::atomic<std::int64_t> count = 0;
constinit std::atomic<std::int64_t> bytes_asked_for = 0;

constexpr std::int64_t kNoLimit = -1;
constinit thread_local std::int64_t left = kNoLimit;

// Whether this allocation may succeed.
[[maybe_unused]] bool record(std::size_t bytes) {
  ++count;
  bytes_asked_for += static_cast<std::int64_t>(bytes);
  if (left == kNoLimit) return true;
  if (left == 0) {
    errno = ENOMEM;
    return false;
  }
  --left;
  return true;
}

}  // namespace

std::int64_t allocation_count() { return count.load(); }
std::int64_t allocated_bytes() { return bytes_asked_for.load(); }

HeapWithRoomFor::HeapWithRoomFor(std::int64_t more) { left = more; }
HeapWithRoomFor::~HeapWithRoomFor() { left = kNoLimit; }

}  // namespace rapt::test

#if defined(__GLIBC__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__) && \
    !RAPT_TEST_FEATURE(address_sanitizer) && !RAPT_TEST_FEATURE(thread_sanitizer)

// A malloc defined by the program replaces the C library's in the whole process. The C library's own functions remain
// available under these names; its free works for both.
extern "C" {
void* __libc_malloc(std::size_t bytes);
void* __libc_calloc(std::size_t items, std::size_t bytes);
void* __libc_realloc(void* memory, std::size_t bytes);
void* __libc_memalign(std::size_t alignment, std::size_t bytes);

void* malloc(std::size_t bytes) noexcept { return rapt::test::record(bytes) ? __libc_malloc(bytes) : nullptr; }
void* calloc(std::size_t items, std::size_t bytes) noexcept {
  return rapt::test::record(items * bytes) ? __libc_calloc(items, bytes) : nullptr;
}
void* realloc(void* memory, std::size_t bytes) noexcept {
  return rapt::test::record(bytes) ? __libc_realloc(memory, bytes) : nullptr;
}
void* aligned_alloc(std::size_t alignment, std::size_t bytes) noexcept {
  return rapt::test::record(bytes) ? __libc_memalign(alignment, bytes) : nullptr;
}
void* memalign(std::size_t alignment, std::size_t bytes) noexcept {
  return rapt::test::record(bytes) ? __libc_memalign(alignment, bytes) : nullptr;
}
int posix_memalign(void** memory, std::size_t alignment, std::size_t bytes) noexcept {
  *memory = rapt::test::record(bytes) ? __libc_memalign(alignment, bytes) : nullptr;
  return *memory == nullptr ? ENOMEM : 0;
}
}

#endif
