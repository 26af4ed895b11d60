#include "support/placement.h"

#include <cstddef>
#include <limits>
#include <stdexcept>
#include <utility>

namespace rapt::test {
namespace {

// A (B, H, L, D) window in a tensor that is larger by one on each side along L and D, filled with NaN.
Placed place_padded(const Dims& shape, DType dtype) {
  Tensor memory({shape[0], shape[1], shape[2] + 2, shape[3] + 2}, dtype);
  const double nan = std::numeric_limits<double>::quiet_NaN();
  copy(ConstTensorView(&nan, Dims{1}).expand(Dims{memory.count()}), memory.view().reshape(Dims{memory.count()}));
  const TensorView view = memory.view().slice(2, 1, shape[2] + 1).slice(3, 1, shape[3] + 1);
  return {std::move(memory), view};
}

// Along L and D the elements are in reverse order.
Placed place_reversed(const Dims& shape, DType dtype) {
  Tensor memory(shape, dtype);
  Dims strides = Layout::contiguous(shape).strides;
  std::int64_t first = 0;
  for (const int dim : {2, 3}) {
    if (shape[dim] > 0) first += (shape[dim] - 1) * strides[dim];
    strides[dim] = -strides[dim];
  }
  auto* data = static_cast<std::byte*>(memory.view().data()) + first * static_cast<std::int64_t>(size_of(dtype));
  const TensorView view(static_cast<void*>(data), dtype, shape, strides);
  return {std::move(memory), view};
}

}  // namespace

Placed place(const Dims& shape, DType dtype, const std::string& layout) {
  if (layout == "padded") return place_padded(shape, dtype);
  if (layout == "reversed") return place_reversed(shape, dtype);
  if (layout == "bhld") {
    Tensor memory(shape, dtype);
    const TensorView view = memory.view();
    return {std::move(memory), view};
  }
  if (layout == "blhd" || layout == "packed_qkv") {  // the output of packed inputs has the layout of combined heads
    Tensor memory({shape[0], shape[2], shape[1], shape[3]}, dtype);
    const TensorView view = memory.view().transpose(1, 2);
    return {std::move(memory), view};
  }
  if (layout == "lbe") {
    Tensor memory({shape[2], shape[0], shape[1] * shape[3]}, dtype);
    const TensorView view = split_heads(memory.view().transpose(0, 1), shape[1]);
    return {std::move(memory), view};
  }
  throw std::runtime_error("no layout " + layout);
}

PlacedQkv place_qkv(const std::array<Dims, 3>& shapes, const std::array<DType, 3>& dtypes, const std::string& layout) {
  PlacedQkv placed;
  if (layout == "packed_qkv") {
    const Dims& shape = shapes[0];
    placed.memory[0] = Tensor({shape[0], shape[2], 3, shape[1], shape[3]}, dtypes[0]);
    const TensorView parts = placed.memory[0].view().permute({2, 0, 3, 1, 4});
    for (std::size_t n = 0; n < 3; ++n) placed.views[n] = parts.select(0, static_cast<std::int64_t>(n));
    return placed;
  }
  for (std::size_t n = 0; n < 3; ++n) {
    Placed one = place(shapes[n], dtypes[n], layout);
    placed.memory[n] = std::move(one.memory);
    placed.views[n] = one.view;
  }
  return placed;
}

}  // namespace rapt::test
