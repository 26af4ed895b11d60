#include "core/memory.h"

#include <cstdlib>
#include <cstring>
#include <new>

#include "core/engine.h"

#if defined(__linux__)
#include <sys/mman.h>
#endif

namespace rapt::core {

namespace {

constexpr std::size_t kAlignment = 64;
constexpr std::size_t kHugePage = std::size_t{2} << 20;
constexpr std::size_t kLarge = 4 * kHugePage;  // so rounding up adds at most a quarter

std::size_t round_up(std::size_t bytes, std::size_t step) { return (bytes + step - 1) / step * step; }

}  // namespace

void FreeBytes::operator()(std::byte* memory) const noexcept {
  if (device.kind == Device::Kind::cpu) {
    std::free(memory);  // NOLINT(cppcoreguidelines-no-malloc): allocate's aligned_alloc
  } else {
    find_device(device)->memory->free(device.index, memory);  // the device existed when this was allocated
  }
}

void FreeAfterCall::operator()(std::byte* memory) const noexcept {
  find_device(device)->memory->free_after_call(device.index, memory, stream);
}

CallBytes allocate_for_call(std::size_t bytes, Device device, StreamHandle stream) {
  const MemoryOps& memory = *device_row(device).memory;
  return {memory.allocate_for_call(device.index, bytes == 0 ? 1 : bytes, stream), FreeAfterCall{device, stream}};
}

Bytes allocate(std::size_t bytes, Device device) {
  if (device.kind != Device::Kind::cpu) {
    return {device_row(device).memory->allocate(device.index, bytes == 0 ? 1 : bytes), FreeBytes{device}};
  }
  const bool large = bytes >= kLarge;
  const std::size_t step = large ? kHugePage : kAlignment;
  if (bytes > static_cast<std::size_t>(-1) / 2) throw std::bad_alloc();  // rounding up must not overflow
  const std::size_t size = round_up(bytes == 0 ? 1 : bytes, step);
  void* memory = std::aligned_alloc(step, size);  // NOLINT(cppcoreguidelines-no-malloc): operator new has no equivalent
  if (memory == nullptr) throw std::bad_alloc();
#if defined(__linux__) && defined(MADV_HUGEPAGE)
  if (large) (void)madvise(memory, size, MADV_HUGEPAGE);  // a hint, so failure is harmless
#endif
  return Bytes(static_cast<std::byte*>(memory));
}

void zero(void* memory, std::size_t bytes, Device device) {
  if (bytes == 0) return;
  if (device.kind == Device::Kind::cpu) {
    std::memset(memory, 0, bytes);
  } else {
    device_row(device).memory->zero(device.index, memory, bytes);
  }
}

constinit const MemoryOps kHostMemory = {
    .allocate = [](int /*device*/, std::size_t bytes) { return allocate(bytes).release(); },
    .free = [](int /*device*/, std::byte* memory) noexcept { FreeBytes()(memory); },
    .allocate_for_call = [](int /*device*/, std::size_t bytes,
                            StreamHandle /*stream*/) { return allocate(bytes).release(); },
    .free_after_call = [](int /*device*/, std::byte* memory, StreamHandle /*stream*/) noexcept { FreeBytes()(memory); },
    .copy = [](int /*device*/, void* to, const void* from, std::size_t bytes,
               CopyDirection /*direction*/) { std::memcpy(to, from, bytes); },
    .zero = [](int /*device*/, void* memory, std::size_t bytes) { std::memset(memory, 0, bytes); },
    .wait = [](int /*device*/) {},
};

}  // namespace rapt::core
