// The memory of a call: the caller's workspace, or memory allocated for this call only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "core/arena.h"
#include "core/engine.h"
#include "core/memory.h"
#include "core/text.h"

namespace rapt {

// The lists of the problem come first, then the engine's memory. A workspace may have any alignment; engines get
// aligned memory. For tensors on a device other than the CPU, the caller's workspace is memory of that device; lists
// and the engine's host memory are allocated.
class CallMemory {
 public:
  CallMemory(const char* function, Device device, std::span<std::byte> workspace, std::size_t problem_bytes = 0,
             StreamHandle stream = {})
      : function_(function),
        device_(device),
        stream_(stream),
        workspace_(workspace),
        problem_bytes_(problem_bytes),
        on_host_(device.kind == Device::Kind::cpu) {}

  static constexpr std::size_t kSlack = Arena::kAlignment - 1;

  // The size that a caller's workspace must have.
  std::size_t workspace_bytes(const Sizes& engine) const {
    return (on_host_ ? problem_bytes_ + engine.host : engine.device) + kSlack;
  }

  // A workspace too small even for the lists is rejected later, when the needed size is known.
  std::span<std::byte> for_problem() {
    if (on_host_ && workspace_.size() >= problem_bytes_ + kSlack) return aligned(workspace_).first(problem_bytes_);
    return allocate(own_problem_, problem_bytes_);
  }
  Buffers for_engine(const Sizes& sizes) {
    if (workspace_.data() == nullptr) {
      return {sizes.host > 0 ? allocate(own_host_, sizes.host) : std::span<std::byte>(), on_device(sizes.device)};
    }
    const std::size_t needed = workspace_bytes(sizes);
    if (workspace_.size() < needed) {
      throw Error(text(function_, ": workspace has ", workspace_.size(), " bytes; this call needs ", needed));
    }
    if (on_host_) return {aligned(workspace_).subspan(problem_bytes_, sizes.host), {}};
    return {sizes.host > 0 ? allocate(own_host_, sizes.host) : std::span<std::byte>(),
            aligned(workspace_).first(sizes.device)};
  }

 private:
  static std::span<std::byte> aligned(std::span<std::byte> memory) {
    const std::size_t past = reinterpret_cast<std::uintptr_t>(memory.data()) % Arena::kAlignment;
    return memory.subspan(past == 0 ? 0 : Arena::kAlignment - past);
  }
  static std::span<std::byte> allocate(core::Bytes& own, std::size_t bytes) {
    own = core::allocate(bytes);  // not zeroed, because engines write before they read
    return {own.get(), bytes};
  }
  std::span<std::byte> on_device(std::size_t bytes) {
    if (bytes == 0) return {};
    own_device_ = core::allocate_for_call(bytes, device_, stream_);
    return {own_device_.get(), bytes};
  }

  const char* function_;
  Device device_;
  StreamHandle stream_;
  std::span<std::byte> workspace_;
  std::size_t problem_bytes_;
  bool on_host_;
  core::Bytes own_problem_, own_host_;
  core::CallBytes own_device_;
};

}  // namespace rapt
