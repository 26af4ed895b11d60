// Checks for (T, E) tensors that are processed row by row.
#pragma once

#include <cstdint>

#include "attention/checks.h"

namespace rapt::nn {

// A matrix in f32 or f64 with contiguous rows.
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
