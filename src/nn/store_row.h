// Stores one row of numbers in a cache: converted, or quantized to int8 with a scale.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "core/elements.h"

namespace rapt::nn {

// Calls visit(from) with a typed pointer to an element: f32, bf16 or f16.
template <class Visit>
void with_row(const ConstTensorView& view, std::int64_t offset, const Visit& visit) {
  switch (view.dtype()) {
    case DType::bf16: return visit(static_cast<const bfloat16*>(view.data()) + offset);
    case DType::f16: return visit(static_cast<const float16*>(view.data()) + offset);
    default: return visit(static_cast<const float*>(view.data()) + offset);
  }
}

// The largest |x|, or NaN or infinity where a number is not finite.
inline float largest_of(const ConstTensorView& view, std::int64_t offset, std::int64_t stride, std::int64_t count) {
  float largest = 0.0F;
  with_row(view, offset, [&](const auto* from) {
    for (std::int64_t n = 0; n < count; ++n) {
      const float size = std::abs(static_cast<float>(from[n * stride]));
      if (!(size <= largest)) largest = size;
      if (std::isnan(size)) return;
    }
  });
  return largest;
}

// x / scale, to nearest, ties to even. A scale so small that it was rounded leaves numbers within ±127 all the same.
inline void store_i8(const ConstTensorView& view, std::int64_t offset, std::int64_t stride, std::int64_t count,
                     float scale, std::int8_t* to) {
  with_row(view, offset, [&](const auto* from) {
    for (std::int64_t n = 0; n < count; ++n) {
      const float quotient = scale > 0.0F ? static_cast<float>(from[n * stride]) / scale : 0.0F;
      to[n] = static_cast<std::int8_t>(std::clamp(std::nearbyint(quotient), -127.0F, 127.0F));
    }
  });
}

// Rounded once.
inline void store_float(const ConstTensorView& view, std::int64_t offset, std::int64_t stride, std::int64_t count,
                        void* data, DType dtype, std::int64_t place) {
  with_element_type(dtype, [&](auto type) {
    using T = decltype(type);
    if constexpr (std::is_integral_v<T>) return;
    T* to = static_cast<T*>(data) + place;
    with_row(view, offset, [&](const auto* from) {
      if constexpr (std::is_same_v<const T*, decltype(from)>) {
        for (std::int64_t n = 0; n < count; ++n) to[n] = from[n * stride];
      } else {
        for (std::int64_t n = 0; n < count; ++n) to[n] = T(static_cast<float>(from[n * stride]));
      }
    });
  });
}

}  // namespace rapt::nn
