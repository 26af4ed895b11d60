// The memory of a call: the caller's, or some for this call alone.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "core/arena.h"
#include "core/text.h"

namespace rapt {

// A caller's workspace may begin anywhere; engines get one that begins on a boundary.
inline constexpr std::size_t kWorkspaceSlack = Arena::kAlignment - 1;

template <class Run>
void with_workspace(const char* function, std::size_t bytes, std::span<std::byte> given, const Run& run) {
  std::unique_ptr<std::byte[]> own;
  if (given.data() == nullptr) {
    own.reset(new std::byte[bytes + kWorkspaceSlack]);  // not zeroed: engines write before they read
    given = {own.get(), bytes + kWorkspaceSlack};
  } else if (given.size() < bytes + kWorkspaceSlack) {
    throw Error(text(function, ": workspace has ", given.size(), " bytes; this call needs ", bytes + kWorkspaceSlack));
  }
  const std::size_t past = reinterpret_cast<std::uintptr_t>(given.data()) % Arena::kAlignment;
  run(given.subspan(past == 0 ? 0 : Arena::kAlignment - past, bytes));
}

}  // namespace rapt
