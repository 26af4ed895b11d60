// Converts rows of any type and stride to f32 and back.
#pragma once

#include <cstdint>

#include "core/elements.h"

namespace rapt::cpu {

// Whether rows can be read in place: contiguous f32.
inline bool reads_in_place(const ConstTensorView& view) { return view.dtype() == DType::f32 && view.stride(3) == 1; }

// Loads `count` elements from `offset` on, `stride` apart. Exact for the 16-bit types.
inline void load_row(const void* data, DType dtype, std::int64_t offset, std::int64_t stride, std::int64_t count,
                     float* to) {
  with_element_type(dtype, [&](auto type) {
    const auto* from = static_cast<const decltype(type)*>(data) + offset;
    for (std::int64_t n = 0; n < count; ++n) to[n] = static_cast<float>(from[n * stride]);
  });
}

// Stores f32 numbers as elements of `dtype`, rounding once.
inline void store_row(const float* from, std::int64_t count, void* data, DType dtype, std::int64_t offset,
                      std::int64_t stride) {
  with_element_type(dtype, [&](auto type) {
    using T = decltype(type);
    auto* to = static_cast<T*>(data) + offset;
    for (std::int64_t n = 0; n < count; ++n) {
      if constexpr (std::is_integral_v<T>) {
        to[n * stride] = from_double<T>(static_cast<double>(from[n]));
      } else {
        to[n * stride] = static_cast<T>(from[n]);
      }
    }
  });
}

}  // namespace rapt::cpu
