#include "cases/placed.h"

#include <algorithm>
#include <functional>

namespace rapt::cases {

namespace {

std::size_t bytes_of(const Tensor& memory) {
  return static_cast<std::size_t>(memory.count()) * size_of(memory.dtype());
}

bool holds(const Tensor& memory, const ConstTensorView& view) {
  const auto* first = static_cast<const std::byte*>(memory.view().data());
  const auto* data = static_cast<const std::byte*>(view.data());
  return std::less_equal<>()(first, data) && std::less<>()(data, first + bytes_of(memory));
}

// The view of `copy` that corresponds to `view` of `memory`.
TensorView moved(const ConstTensorView& view, const Tensor& memory, Tensor& copy) {
  std::byte* data = nullptr;  // of a view without elements
  if (view.data() != nullptr) {
    const auto distance =
        static_cast<const std::byte*>(view.data()) - static_cast<const std::byte*>(memory.view().data());
    data = static_cast<std::byte*>(copy.view().data()) + distance;
  }
  return {data, view.dtype(), view.shape(), view.strides(), copy.device()};
}

}  // namespace

Tensor& Placed::copy_of(const Tensor& memory, Tensor* back) {
  for (Copy& copy : copies_) {
    if (copy.from == memory.view().data() && memory.count() > 0) return copy.there;
  }
  return copies_.emplace_back(Copy{memory.view().data(), memory.to(device_), back}).there;
}

ConstTensorView Placed::input(const Tensor& memory, const ConstTensorView& view) {
  if (on_cpu() || !view.defined()) return view;
  return moved(view, memory, copy_of(memory, nullptr));
}

ConstTensorView Placed::input(const std::deque<Tensor>& memories, const ConstTensorView& view) {
  if (on_cpu() || !view.defined()) return view;
  for (const Tensor& memory : memories) {
    if (holds(memory, view)) return input(memory, view);
  }
  return input(Tensor(Dims{0}, view.dtype()), ConstTensorView(nullptr, view.dtype(), view.shape(), view.strides()));
}

TensorView Placed::output(Tensor& memory, const TensorView& view) {
  if (on_cpu() || !view.defined()) return view;
  return moved(view, memory, copy_of(memory, &memory));
}

void Placed::bring_back() {
  for (Copy& copy : copies_) {
    if (copy.back != nullptr) rapt::copy(copy.there, *copy.back);
  }
}

std::span<std::byte> GuardedWorkspace::of_bytes(std::size_t bytes) {
  Tensor ones({kBefore + static_cast<std::int64_t>(bytes) + kAfter}, DType::i8);
  const std::span<std::int8_t> values = ones.values<std::int8_t>();
  std::fill(values.begin(), values.end(), std::int8_t{-1});
  memory_ = ones.to(device_);
  return {static_cast<std::byte*>(memory_.view().data()) + kBefore, bytes};
}

bool GuardedWorkspace::is_untouched() const {
  if (memory_.count() == 0) return true;
  const Tensor now = Tensor::copy_of(memory_, DType::i8, Device{});
  const auto all = now.values<std::int8_t>();
  const auto is_set = [](std::int8_t each) { return each == -1; };
  return std::all_of(all.begin(), all.begin() + kBefore, is_set) && std::all_of(all.end() - kAfter, all.end(), is_set);
}

}  // namespace rapt::cases
