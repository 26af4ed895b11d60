#include "support/allocations.h"

#include <atomic>
#include <cstdlib>
#include <new>

namespace {

constinit std::atomic<std::int64_t> count = 0;

}  // namespace

std::int64_t rapt::test::allocation_count() { return count.load(); }

#if !defined(__SANITIZE_THREAD__) && !defined(__SANITIZE_ADDRESS__) && !RAPT_TEST_FEATURE(thread_sanitizer) && \
    !RAPT_TEST_FEATURE(address_sanitizer)

namespace {

void* counted(std::size_t bytes, std::size_t alignment) {
  ++count;
  bytes = (bytes + alignment - 1) / alignment * alignment;
  void* memory = std::aligned_alloc(alignment, bytes == 0 ? alignment : bytes);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

}  // namespace

// The other forms, those of arrays among them, call these.
void* operator new(std::size_t bytes) { return counted(bytes, alignof(std::max_align_t)); }
void* operator new(std::size_t bytes, std::align_val_t alignment) {
  return counted(bytes, static_cast<std::size_t>(alignment));
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t /*bytes*/) noexcept { std::free(memory); }
void operator delete(void* memory, std::align_val_t /*alignment*/) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t /*bytes*/, std::align_val_t /*alignment*/) noexcept {
  std::free(memory);
}

#endif
