// Loads and stores one element of any type as a double. Every value of the narrower types is exact in a double, so only
// a store rounds.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "rapt/tensor.h"

namespace rapt {

// Calls visit(T{}) with the C++ type of `dtype`.
template <class Visit>
decltype(auto) with_element_type(DType dtype, const Visit& visit) {
  switch (dtype) {
    case DType::f32: return visit(float{});
    case DType::f64: return visit(double{});
    case DType::bf16: return visit(bfloat16{});
    case DType::f16: return visit(float16{});
    case DType::i8: return visit(std::int8_t{});
    case DType::boolean: break;
  }
  return visit(bool{});
}

template <class T>
double to_double(T value) {
  return static_cast<double>(value);
}

template <class T>
T from_double(double value) {
  return T(value);
}
template <>
inline float from_double<float>(double value) {
  return static_cast<float>(value);
}
template <>
inline bool from_double<bool>(double value) {
  return value != 0.0;
}
template <>
inline std::int8_t from_double<std::int8_t>(double value) {
  return std::isnan(value) ? std::int8_t{0}
                           : static_cast<std::int8_t>(std::clamp(std::nearbyint(value), -128.0, 127.0));
}

inline double load(const void* data, DType dtype, std::int64_t offset) {
  // Read as a byte, not as a bool, because memory cast to bool may hold values other than 0 and 1.
  if (dtype == DType::boolean) return static_cast<const std::uint8_t*>(data)[offset] != 0 ? 1.0 : 0.0;
  return with_element_type(dtype,
                           [&](auto type) { return to_double(static_cast<const decltype(type)*>(data)[offset]); });
}

inline void store(void* data, DType dtype, std::int64_t offset, double value) {
  with_element_type(
      dtype, [&](auto type) { static_cast<decltype(type)*>(data)[offset] = from_double<decltype(type)>(value); });
}

}  // namespace rapt
