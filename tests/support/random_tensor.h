// Tensors of made-up numbers, and the bytes of a tensor.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "cases/case.h"
#include "rapt/tensor.h"
#include "support/same_bits.h"

namespace rapt::test {

// Numbers between −1 and 1 that depend only on shape, type and seed.
inline Tensor random(const Dims& shape, DType dtype = DType::f32, std::uint32_t seed = 1) {
  cases::Stream stream(seed);
  Tensor values(shape, DType::f64);
  for (double& value : values.values<double>()) value = 2.0 * stream.uniform() - 1.0;
  return values.to(dtype);
}

inline std::vector<std::byte> bytes_of(const ConstTensorView& view) {
  const Tensor plain = Tensor::copy_of(view);
  const auto* begin = static_cast<const std::byte*>(plain.view().data());
  return {begin, begin + static_cast<std::size_t>(plain.count()) * size_of(plain.dtype())};
}

}  // namespace rapt::test
