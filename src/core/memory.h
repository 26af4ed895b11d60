// Memory of tensors, packed matrices and workspaces.
#pragma once

#include <cstddef>
#include <memory>

namespace rapt::core {

struct FreeBytes {
  void operator()(std::byte* memory) const noexcept;
};
using Bytes = std::unique_ptr<std::byte, FreeBytes>;

// Aligned to 64 bytes, and not set to anything. A large piece begins on a huge page and asks for huge pages: a core
// that walks through memory then finds its way with few looks at the page table, and reads half as fast again.
Bytes allocate(std::size_t bytes);

}  // namespace rapt::core
