#include <cmath>
#include <numbers>

#include "attention/apart.h"
#include "nn/row_work.h"
#include "rapt/layers.h"

namespace rapt {

namespace {

template <class T>
T distribution(T x) {  // Φ
  return static_cast<T>(0.5) * std::erfc(-x * static_cast<T>(std::numbers::sqrt2 / 2.0));
}
template <class T>
T density(T x) {  // φ = Φ'
  return static_cast<T>(std::numbers::inv_sqrtpi / std::numbers::sqrt2) * std::exp(static_cast<T>(-0.5) * x * x);
}

constexpr std::int64_t kCost = 40;  // of one number, in multiply-adds

void check_same(const Checks& checks, std::string_view name, const ConstTensorView& view, const ConstTensorView& x) {
  nn::check_matrix(checks, name, view, x.dtype());
  checks.shaped(name, view, x.shape(), "that of x");
}

}  // namespace

void gelu(const TensorView& y, const ConstTensorView& x) {
  const Checks checks("gelu");
  check_same(checks, "x", x, x);
  check_same(checks, "y", y, x);
  Apart tensors(checks);
  tensors.add_input("x", x);
  tensors.add_output("y", y, "x");
  nn::with_float_type(x.dtype(), [&](auto type) {
    using T = decltype(type);
    nn::for_rows(x.size(0), kCost * x.size(1), [&](std::int64_t t) {
      const T* from = nn::row_of<T>(x, t);
      T* to = nn::row_of<T>(y, t);
      for (std::int64_t n = 0; n < x.size(1); ++n) to[n] = from[n] * distribution(from[n]);
    });
  });
}

void gelu_backward(const TensorView& dx, const ConstTensorView& dy, const ConstTensorView& x) {
  const Checks checks("gelu_backward");
  check_same(checks, "x", x, x);
  check_same(checks, "dy", dy, x);
  check_same(checks, "dx", dx, x);
  Apart tensors(checks);
  tensors.add_input("dy", dy);
  tensors.add_input("x", x);
  tensors.add_output("dx", dx, "dy");
  nn::with_float_type(x.dtype(), [&](auto type) {
    using T = decltype(type);
    nn::for_rows(x.size(0), 2 * kCost * x.size(1), [&](std::int64_t t) {
      const T* from = nn::row_of<T>(x, t);
      const T* up = nn::row_of<T>(dy, t);
      T* to = nn::row_of<T>(dx, t);
      for (std::int64_t n = 0; n < x.size(1); ++n) {
        to[n] = up[n] * (distribution(from[n]) + from[n] * density(from[n]));
      }
    });
  });
}

}  // namespace rapt
