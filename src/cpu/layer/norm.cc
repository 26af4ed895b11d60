// Layer norm and GELU, with their gradients.
#include <cmath>
#include <cstddef>
#include <numbers>
#include <vector>

#include "cpu/layer/layer_ops.h"
#include "cpu/layer/rows.h"

namespace rapt::cpu {

namespace {

// The mean of a row and the factor that normalizes it. They are doubles, because the mean may be much larger than the
// deviations from it.
struct RowScale {
  RowScale() = default;
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

template <class T>
T distribution(T x) {  // Φ
  return static_cast<T>(0.5) * std::erfc(-x * static_cast<T>(std::numbers::sqrt2 / 2.0));
}
template <class T>
T density(T x) {  // φ = Φ'
  return static_cast<T>(std::numbers::inv_sqrtpi / std::numbers::sqrt2) * std::exp(static_cast<T>(-0.5) * x * x);
}

constexpr std::int64_t kGeluCost = 40;  // per element, in multiply-adds

}  // namespace

void norm(const NormProblem& problem, const Workers& workers) {
  const ConstTensorView& x = problem.x;
  const std::int64_t size = x.size(1);
  with_float_type(x.dtype(), [&](auto type) {
    using T = decltype(type);
    const auto* w = static_cast<const T*>(problem.weight.data());
    const auto* b = static_cast<const T*>(problem.bias.data());
    for_rows(workers, x.size(0), 8 * size, [&](std::int64_t t) {
      const T* from = row_of<T>(x, t);
      T* to = row_of<T>(problem.y, t);
      const RowScale scale(from, size, problem.epsilon);
      if (b == nullptr) {
        for (std::int64_t n = 0; n < size; ++n) to[n] = scale.normed(from[n]) * w[n] + T();
      } else {
        for (std::int64_t n = 0; n < size; ++n) to[n] = scale.normed(from[n]) * w[n] + b[n];
      }
    });
  });
}

void norm_backward(const NormBackwardProblem& problem, const Workers& workers) {
  const ConstTensorView &x = problem.x, &dy = problem.dy;
  const std::int64_t size = x.size(1);
  std::vector<RowScale> scales(static_cast<std::size_t>(x.size(0)));
  with_float_type(x.dtype(), [&](auto type) {
    using T = decltype(type);
    const auto scale_of = [&](std::int64_t t) -> RowScale& { return scales[static_cast<std::size_t>(t)]; };
    for_rows(workers, x.size(0), 6 * size,
             [&](std::int64_t t) { scale_of(t) = RowScale(row_of<T>(x, t), size, problem.epsilon); });
    // dweight and dbias come before dx, which may overwrite dy. In every column, rows ascend, so that each element is
    // one chain.
    auto* dw = static_cast<T*>(problem.dweight.data());
    auto* db = static_cast<T*>(problem.dbias.data());
    if (dw != nullptr || db != nullptr) {
      for_parts(workers, size, 3 * size * x.size(0), [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t t = 0; t < x.size(0); ++t) {
          const T* from = row_of<T>(x, t);
          const T* up = row_of<T>(dy, t);
          const RowScale& scale = scale_of(t);
          for (std::int64_t n = begin; n < end; ++n) {
            if (dw != nullptr) dw[n] += up[n] * scale.normed(from[n]);
            if (db != nullptr) db[n] += up[n];
          }
        }
      });
    }
    if (!problem.dx.defined()) return;
    const auto* w = static_cast<const T*>(problem.weight.data());
    for_rows(workers, x.size(0), 12 * size, [&](std::int64_t t) {
      const T* from = row_of<T>(x, t);
      const T* up = row_of<T>(dy, t);
      T* to = row_of<T>(problem.dx, t);
      const RowScale& scale = scale_of(t);
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

void gelu(const TensorView& y, const ConstTensorView& x, const Workers& workers) {
  with_float_type(x.dtype(), [&](auto type) {
    using T = decltype(type);
    for_rows(workers, x.size(0), kGeluCost * x.size(1), [&](std::int64_t t) {
      const T* from = row_of<T>(x, t);
      T* to = row_of<T>(y, t);
      for (std::int64_t n = 0; n < x.size(1); ++n) to[n] = from[n] * distribution(from[n]);
    });
  });
}

void gelu_backward(const TensorView& dx, const ConstTensorView& dy, const ConstTensorView& x, const Workers& workers) {
  with_float_type(x.dtype(), [&](auto type) {
    using T = decltype(type);
    for_rows(workers, x.size(0), 2 * kGeluCost * x.size(1), [&](std::int64_t t) {
      const T* from = row_of<T>(x, t);
      const T* up = row_of<T>(dy, t);
      T* to = row_of<T>(dx, t);
      for (std::int64_t n = 0; n < x.size(1); ++n) {
        to[n] = up[n] * (distribution(from[n]) + from[n] * density(from[n]));
      }
    });
  });
}

}  // namespace rapt::cpu
