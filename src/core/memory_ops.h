// Memory operations of a device: allocate, free, copy, zero.
#pragma once

#include <cstddef>
#include <cstdint>

#include "rapt/tensor.h"

namespace rapt {

enum class CopyDirection : std::uint8_t { within_device, from_host, to_host };

// Operations on one device run in call order, also relative to the computations of its engine. `copy` and `zero` may
// return before they are done. A copy to the host returns when the host has the bytes, and a copy from the host when
// the host memory may be changed.
struct MemoryOps {
  // Uninitialized, aligned to 64 bytes; throws std::bad_alloc on failure.
  std::byte* (*allocate)(int device, std::size_t bytes);
  // Frees the memory after all work submitted to the device so far.
  void (*free)(int device, std::byte* memory) noexcept;
  // Allocate and free the memory of one call, in stream order and without waiting.
  std::byte* (*allocate_for_call)(int device, std::size_t bytes, StreamHandle stream);
  void (*free_after_call)(int device, std::byte* memory, StreamHandle stream) noexcept;
  void (*copy)(int device, void* to, const void* from, std::size_t bytes, CopyDirection direction);
  void (*zero)(int device, void* memory, std::size_t bytes);
  void (*wait)(int device);  // until all work submitted to the device is done
};

}  // namespace rapt
