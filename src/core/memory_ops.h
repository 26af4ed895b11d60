// Memory of a device: how it is taken and given back, and how bytes come into it and out of it.
#pragma once

#include <cstddef>
#include <cstdint>

#include "rapt/tensor.h"

namespace rapt {

enum class CopyDirection : std::uint8_t { within_device, from_host, to_host };

// Calls of one device happen in their order, and with what its engine computes. `copy` and `zero` may return before
// they are done, except that a copy to the host returns when the host has the bytes, and one from the host when its
// memory may change.
struct MemoryOps {
  // Uninitialized, aligned to 64 bytes; throws std::bad_alloc where there is none.
  std::byte* (*allocate)(int device, std::size_t bytes);
  void (*free)(int device, std::byte* memory) noexcept;
  void (*copy)(int device, void* to, const void* from, std::size_t bytes, CopyDirection direction);
  void (*zero)(int device, void* memory, std::size_t bytes);
  void (*wait)(int device);  // until all that was asked of the device is done
};

}  // namespace rapt
