// Divides rows among a call's workers.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>

#include "core/product.h"

namespace rapt::cpu {

// Calls visit(T()), where T is double for f64 and float otherwise.
template <class Visit>
void with_float_type(DType dtype, const Visit& visit) {
  if (dtype == DType::f64) return visit(double());
  visit(float());
}

// The start of a row, in a matrix with contiguous rows.
template <class T>
T* row_of(const TensorView& view, std::int64_t row) {
  return static_cast<T*>(view.data()) + row * view.stride(0);
}
template <class T>
const T* row_of(const ConstTensorView& view, std::int64_t row) {
  return static_cast<const T*>(view.data()) + row * view.stride(0);
}

// Calls work(begin, end) on nearly equal parts of `count`, on as many workers as pay off; `cost` is the total cost in
// multiply-adds.
template <class Work>
void for_parts(const Workers& workers, std::int64_t count, std::int64_t cost, const Work& work) {
  constexpr std::int64_t kWorthAThread = 1 << 16;
  if (count <= 0) return;
  const std::int64_t parts =
      std::clamp<std::int64_t>(cost / kWorthAThread, 1, std::min<std::int64_t>(workers.threads, count));
  if (parts == 1) return work(std::int64_t{0}, count);
  const auto task = [&](std::int64_t part) { work(count * part / parts, count * (part + 1) / parts); };
  (*workers.parallel_for)(parts, std::ref(task));  // a copy of the task would allocate memory
}

// Calls work(row) for each row; `cost` is that of one row.
template <class Work>
void for_rows(const Workers& workers, std::int64_t rows, std::int64_t cost, const Work& work) {
  for_parts(workers, rows, rows * cost, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t row = begin; row < end; ++row) work(row);
  });
}

}  // namespace rapt::cpu
