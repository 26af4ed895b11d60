// The tensors of a call on the device where it runs.
//
// On the CPU they are the given tensors. For another device, the whole memory that contains a view is copied there,
// including what surrounds the view, and an output's memory is copied back.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <span>

#include "rapt/tensor.h"

namespace rapt::cases {

class Placed {
 public:
  explicit Placed(Device device) : device_(device) {}

  // `view` is in `memory`, or undefined.
  ConstTensorView input(const Tensor& memory, const ConstTensorView& view);
  // `view` is in one of `memories`, or undefined.
  ConstTensorView input(const std::deque<Tensor>& memories, const ConstTensorView& view);
  TensorView output(Tensor& memory, const TensorView& view);

  // Waits until the device is done, and copies the memory of outputs back.
  void bring_back();

  Device device() const { return device_; }
  bool on_cpu() const { return device_.kind == Device::Kind::cpu; }

 private:
  struct Copy {
    const void* from;
    Tensor there;
    Tensor* back;  // null for inputs
  };
  Tensor& copy_of(const Tensor& memory, Tensor* back);

  Device device_;
  std::deque<Copy> copies_;
};

// A workspace on a device, at an odd address. Initially all of its bits are set, which is NaN in every float type. The
// memory around it is checked afterwards.
class GuardedWorkspace {
 public:
  explicit GuardedWorkspace(Device device) : device_(device) {}

  std::span<std::byte> of_bytes(std::size_t bytes);
  bool is_untouched() const;  // the memory around it

 private:
  static constexpr std::int64_t kBefore = 77, kAfter = 128;
  Device device_;
  Tensor memory_;
};

}  // namespace rapt::cases
