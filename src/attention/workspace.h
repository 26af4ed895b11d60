// The memory of a call: the caller's workspace, or an allocation for this call.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "core/arena.h"
#include "core/memory.h"
#include "core/text.h"

namespace rapt {

// First come the lists of the problem, then what the engine needs. A workspace may start at any address; engines get
// aligned memory.
class CallMemory {
 public:
  CallMemory(const char* function, std::span<std::byte> workspace, std::size_t problem_bytes = 0)
      : function_(function), workspace_(workspace), problem_bytes_(problem_bytes) {}

  static constexpr std::size_t kSlack = Arena::kAlignment - 1;

  // A workspace too small even for the lists is rejected later, when the needed size is known.
  std::span<std::byte> for_problem() {
    if (workspace_.size() >= problem_bytes_ + kSlack) return aligned(workspace_).first(problem_bytes_);
    return allocate(own_problem_, problem_bytes_);
  }
  std::span<std::byte> for_engine(std::size_t bytes) {
    if (workspace_.data() == nullptr) return allocate(own_engine_, bytes);
    const std::size_t needed = problem_bytes_ + bytes + kSlack;
    if (workspace_.size() < needed) {
      throw Error(text(function_, ": workspace has ", workspace_.size(), " bytes; this call needs ", needed));
    }
    return aligned(workspace_).subspan(problem_bytes_, bytes);
  }

 private:
  static std::span<std::byte> aligned(std::span<std::byte> memory) {
    const std::size_t past = reinterpret_cast<std::uintptr_t>(memory.data()) % Arena::kAlignment;
    return memory.subspan(past == 0 ? 0 : Arena::kAlignment - past);
  }
  static std::span<std::byte> allocate(core::Bytes& own, std::size_t bytes) {
    own = core::allocate(bytes);  // not zeroed: engines write before they read
    return {own.get(), bytes};
  }

  const char* function_;
  std::span<std::byte> workspace_;
  std::size_t problem_bytes_;
  core::Bytes own_problem_, own_engine_;
};

}  // namespace rapt
