#include <cmath>
#include <cstddef>
#include <vector>

#include "attention/apart.h"
#include "nn/row_work.h"
#include "rapt/layers.h"

namespace rapt {

namespace {

// What a row is shifted and multiplied by. In double, because the mean may be much larger than the deviations.
struct RowScale {
  template <class T>
  RowScale(const T* row, std::int64_t size, double epsilon) {
    const auto count = static_cast<double>(size);
    for (std::int64_t n = 0; n < size; ++n) mean += row[n];
    mean /= count;
    double variance = 0.0;
    for (std::int64_t n = 0; n < size; ++n) variance += (row[n] - mean) * (row[n] - mean);
    factor = 1.0 / std::sqrt(variance / count + epsilon);
  }
  template <class T>
  T normed(T x) const {
    return static_cast<T>((x - mean) * factor);
  }

  double mean = 0.0, factor = 0.0;
};

void check_parameters(const Checks& checks, const ConstTensorView& x, const ConstTensorView& weight,
                      const ConstTensorView& bias, double epsilon) {
  nn::check_vector(checks, "weight", weight, x.size(1), x.dtype());
  if (bias.defined()) nn::check_vector(checks, "bias", bias, x.size(1), x.dtype());
  checks.require(x.size(1) > 0, "x has rows of no numbers");
  checks.require(epsilon >= 0.0, "epsilon is ", epsilon, "; it must be at least 0");
}

}  // namespace

void layer_norm(const TensorView& y, const ConstTensorView& x, const ConstTensorView& weight,
                const ConstTensorView& bias, double epsilon) {
  const Checks checks("layer_norm");
  nn::check_matrix(checks, "x", x, x.dtype());
  nn::check_matrix(checks, "y", y, x.dtype());
  checks.shaped("y", y, x.shape(), "that of x");
  check_parameters(checks, x, weight, bias, epsilon);
  Apart tensors(checks);
  tensors.add_input("x", x);
  tensors.add_input("weight", weight);
  tensors.add_input("bias", bias);
  tensors.add_output("y", y, "x");
  const std::int64_t size = x.size(1);
  nn::with_float_type(x.dtype(), [&](auto type) {
    using T = decltype(type);
    const auto* w = static_cast<const T*>(weight.data());
    const auto* b = static_cast<const T*>(bias.data());
    nn::for_rows(x.size(0), 8 * size, [&](std::int64_t t) {
      const T* from = nn::row_of<T>(x, t);
      T* to = nn::row_of<T>(y, t);
      const RowScale scale(from, size, epsilon);
      for (std::int64_t n = 0; n < size; ++n) to[n] = scale.normed(from[n]) * w[n] + (b != nullptr ? b[n] : T());
    });
  });
}

void layer_norm_backward(const LayerNormGradients& gradients, const ConstTensorView& dy, const ConstTensorView& x,
                         const ConstTensorView& weight, double epsilon) {
  const Checks checks("layer_norm_backward");
  const TensorView &dx = gradients.dx, &dweight = gradients.dweight, &dbias = gradients.dbias;
  nn::check_matrix(checks, "x", x, x.dtype());
  nn::check_matrix(checks, "dy", dy, x.dtype());
  checks.shaped("dy", dy, x.shape(), "that of x");
  check_parameters(checks, x, weight, {}, epsilon);
  const std::int64_t size = x.size(1);
  if (dx.defined()) {
    nn::check_matrix(checks, "dx", dx, x.dtype());
    checks.shaped("dx", dx, x.shape(), "that of x");
  }
  if (dweight.defined()) nn::check_vector(checks, "dweight", dweight, size, x.dtype());
  if (dbias.defined()) nn::check_vector(checks, "dbias", dbias, size, x.dtype());
  Apart tensors(checks);
  tensors.add_input("dy", dy);
  tensors.add_input("x", x);
  tensors.add_input("weight", weight);
  tensors.add_output("dx", dx, "dy");
  tensors.add_output("dweight", dweight);
  tensors.add_output("dbias", dbias);
  nn::with_float_type(x.dtype(), [&](auto type) {
    using T = decltype(type);
    const auto* w = static_cast<const T*>(weight.data());
    // Before dx, which may be written over dy.
    auto* dw = static_cast<T*>(dweight.data());
    auto* db = static_cast<T*>(dbias.data());
    for (std::int64_t t = 0; t < x.size(0) && (dw != nullptr || db != nullptr); ++t) {
      const T* from = nn::row_of<T>(x, t);
      const T* up = nn::row_of<T>(dy, t);
      const RowScale scale(from, size, epsilon);
      for (std::int64_t n = 0; n < size; ++n) {
        if (dw != nullptr) dw[n] += up[n] * scale.normed(from[n]);
        if (db != nullptr) db[n] += up[n];
      }
    }
    if (!dx.defined()) return;
    nn::for_rows(x.size(0), 12 * size, [&](std::int64_t t) {
      const T* from = nn::row_of<T>(x, t);
      const T* up = nn::row_of<T>(dy, t);
      T* to = nn::row_of<T>(dx, t);
      const RowScale scale(from, size, epsilon);
      // The output does not change when x is shifted or scaled, so these two components of the gradient are removed.
      double along_one = 0.0, along_x = 0.0;
      for (std::int64_t n = 0; n < size; ++n) {
        const double g = static_cast<double>(up[n]) * w[n];
        along_one += g;
        along_x += g * (from[n] - scale.mean) * scale.factor;
      }
      along_one /= static_cast<double>(size), along_x /= static_cast<double>(size);
      for (std::int64_t n = 0; n < size; ++n) {
        const double g = static_cast<double>(up[n]) * w[n];
        to[n] = static_cast<T>(scale.factor * (g - along_one - (from[n] - scale.mean) * scale.factor * along_x));
      }
    });
  });
}

}  // namespace rapt
