// Copies, conversions, sums and dropout.
#include <array>
#include <cmath>
#include <cstddef>
#include <cstring>

#include "core/copy.h"
#include "core/elements.h"
#include "cpu/layer/layer_kernels.h"
#include "cpu/layer/layer_ops.h"
#include "cpu/layer/rows.h"

namespace rapt::cpu {

namespace {

// The dimension to split among workers: the largest, and of equal ones the outermost.
int longest_dimension(const ConstTensorView& view) {
  int longest = 0;
  for (int dim = 1; dim < view.rank(); ++dim) {
    if (view.size(dim) > view.size(longest)) longest = dim;
  }
  return longest;
}

}  // namespace

void copy_elements(const ConstTensorView& from, const TensorView& to, const Workers& workers) {
  if (to.rank() == 0) return core::copy_elements(from, to);
  const int dim = longest_dimension(to);
  for_parts(workers, to.size(dim), to.count() / 2, [&](std::int64_t begin, std::int64_t end) {
    core::copy_elements(from.slice(dim, begin, end), to.slice(dim, begin, end));
  });
}

void fill(const TensorView& to, double value, const Workers& workers) {
  alignas(8) std::array<std::byte, 8> one{};
  store(one.data(), to.dtype(), 0, value);
  copy_elements(ConstTensorView(one.data(), to.dtype(), Dims{1}).expand(to.shape()), to, workers);
}

void add(const TensorView& to, const ConstTensorView& x, const Workers& workers) {
  const std::int64_t size = to.size(1);
  with_float_type(to.dtype(), [&](auto type) {
    using T = decltype(type);
    for_rows(workers, to.size(0), size, [&](std::int64_t t) {
      T* sums = row_of<T>(to, t);
      const T* from = row_of<T>(x, t);
      if constexpr (std::is_same_v<T, float>) {
        layer_kernels().add(sums, from, size);
      } else {
        for (std::int64_t n = 0; n < size; ++n) sums[n] += from[n];
      }
    });
  });
}

void add_row_sums(const ConstTensorView& rows, const TensorView& sums, const Workers& workers) {
  with_float_type(sums.dtype(), [&](auto type) {
    using T = decltype(type);
    for_parts(workers, rows.size(1), rows.count(), [&](std::int64_t begin, std::int64_t end) {
      T* to = static_cast<T*>(sums.data());
      for (std::int64_t i = 0; i < rows.size(0); ++i) {
        const T* row = row_of<T>(rows, i);
        if constexpr (std::is_same_v<T, float>) {
          if (rows.stride(1) == 1) {
            layer_kernels().add(to + begin, row + begin, end - begin);
            continue;
          }
        }
        for (std::int64_t n = begin; n < end; ++n) to[n] += row[n * rows.stride(1)];
      }
    });
  });
}

void drop_output(const OutputDropoutProblem& problem, const Workers& workers) {
  const TensorView& x = problem.x;
  const std::int64_t width = x.size(2);
  with_element_type(x.dtype(), [&](auto type) {
    using T = decltype(type);
    for_rows(workers, x.size(0) * x.size(1), 16 * width, [&](std::int64_t token) {
      const std::int64_t b = token / x.size(1), i = token % x.size(1);
      T* row = static_cast<T*>(x.data()) + b * x.stride(0) + i * x.stride(1);
      PhiloxCounter words{};
      for (std::int64_t o = 0; o < width; ++o) {
        if (o % 4 == 0) {
          words =
              philox4x32_10({problem.batch_start + static_cast<std::uint32_t>(b), 0xFFFFFFFFU,
                             problem.query_start + static_cast<std::uint32_t>(i), static_cast<std::uint32_t>(o / 4)},
                            problem.key);
        }
        T& number = row[o * x.stride(2)];
        const bool kept = words[static_cast<std::size_t>(o % 4)] >= problem.threshold;
        number = from_double<T>(kept ? to_double(number) * problem.scale : 0.0);
      }
    });
  });
}

}  // namespace rapt::cpu
