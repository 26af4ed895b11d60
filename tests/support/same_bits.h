// Whether two tensors have the same shape, type and bits.
#pragma once

#include <cstddef>
#include <cstring>

#include "rapt/tensor.h"

namespace rapt::test {

inline bool same_bits(const ConstTensorView& a, const ConstTensorView& b) {
  if (a.shape() != b.shape() || a.dtype() != b.dtype()) return false;
  const Tensor x = Tensor::copy_of(a), y = Tensor::copy_of(b);
  const auto bytes = static_cast<std::size_t>(x.count()) * size_of(x.dtype());
  return bytes == 0 || std::memcmp(x.view().data(), y.view().data(), bytes) == 0;
}

}  // namespace rapt::test
