// A matrix product after validation.
//
// src/attention builds these and an engine may trust them: shapes and types agree, every default is filled in.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>

#include "rapt/parallel.h"
#include "rapt/tensor.h"

namespace rapt {

// Who runs the pieces of a call.
struct Workers {
  int threads = 1;
  const ParallelFor* parallel_for = nullptr;  // a pointer, because a copy may allocate
};

namespace core {

// The library's pool, as a function that a caller might give.
const ParallelFor& pool_function();

// The library's pool, with as many threads as thread_count() says, or as many as asked for.
Workers pool_workers(int threads = 0);

}  // namespace core

// W (N, K), in whatever order its engine likes.
struct PackedWeights {
  std::int64_t outputs = 0, inputs = 0;  // N, K
  DType dtype = DType::f32;
  // Which variant of its engine packed it, where there are several (instruction sets): only that one knows the order.
  const void* variant = nullptr;
  std::byte* data = nullptr;  // aligned to 64 bytes
};

// y = x · Wᵀ + bias, or + start
struct ProductProblem {
  PackedWeights weights;
  ConstTensorView x;      // (M, K)
  ConstTensorView bias;   // (N); undefined: none
  ConstTensorView start;  // (M, N), instead of a bias; maybe y's memory and strides; undefined: none
  TensorView y;           // (M, N)
  Workers workers;
};

}  // namespace rapt
