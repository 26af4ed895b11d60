// Steps that work on each row of a (T, E) tensor by itself.
#pragma once

#include <algorithm>
#include <cstdint>
#include <type_traits>

#include "attention/checks.h"
#include "core/elements.h"
#include "rapt/parallel.h"

namespace rapt::nn {

// Calls run(T()) for f32 and f64.
template <class Run>
void with_float_type(DType dtype, const Run& run) {
  if (dtype == DType::f64) return run(double());
  run(float());
}

// A matrix with contiguous rows.
template <class T>
T* row_of(const TensorView& view, std::int64_t row) {
  return static_cast<T*>(view.data()) + row * view.stride(0);
}
template <class T>
const T* row_of(const ConstTensorView& view, std::int64_t row) {
  return static_cast<const T*>(view.data()) + row * view.stride(0);
}

// Calls work(row) for each of `rows`, on several threads where that is worth it; `cost` of one, in multiply-adds.
template <class Work>
void for_rows(std::int64_t rows, std::int64_t cost, const Work& work) {
  constexpr std::int64_t kWorthAThread = 1 << 16;
  const std::int64_t parts =
      std::clamp<std::int64_t>(rows * cost / kWorthAThread, 1, std::min<std::int64_t>(rows, thread_count()));
  if (rows == 0) return;
  if (parts == 1) {
    for (std::int64_t row = 0; row < rows; ++row) work(row);
    return;
  }
  parallel_for(parts, [&](std::int64_t part) {
    for (std::int64_t row = rows * part / parts; row < rows * (part + 1) / parts; ++row) work(row);
  });
}

// sums[n] = sums[n] + Σ rows[i][n], rows ascending: one chain for each number.
inline void add_sums(const ConstTensorView& rows, const TensorView& sums) {
  with_float_type(sums.dtype(), [&](auto type) {
    using T = decltype(type);
    T* to = static_cast<T*>(sums.data());
    for (std::int64_t i = 0; i < rows.size(0); ++i) {
      const T* row = row_of<T>(rows, i);
      for (std::int64_t n = 0; n < rows.size(1); ++n) to[n] += row[n * rows.stride(1)];
    }
  });
}

// A matrix, f32 or f64, rows of contiguous numbers.
inline void check_matrix(const Checks& checks, std::string_view name, const ConstTensorView& view, DType dtype) {
  checks.usable(name, view);
  checks.require(view.rank() == 2, name, " has shape ", view.shape(), "; it must be a matrix");
  checks.require(view.dtype() == dtype && (dtype == DType::f32 || dtype == DType::f64), name, " is ", view.dtype(),
                 "; all must be f32, or all f64");
  checks.require(view.stride(1) == 1 || view.size(1) <= 1, name, " has strides ", view.strides(),
                 "; each row must be contiguous");
}

inline void check_vector(const Checks& checks, std::string_view name, const ConstTensorView& view, std::int64_t size,
                         DType dtype) {
  checks.shaped(name, view, {size}, "one number for each column");
  checks.require(view.dtype() == dtype, name, " is ", view.dtype(), "; all must be f32, or all f64");
  checks.require(view.stride(0) == 1 || size <= 1, name, " has strides ", view.strides(), "; it must be contiguous");
}

}  // namespace rapt::nn
