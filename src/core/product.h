// A matrix product after validation.
//
// src/attention and src/nn build these problems, and an engine may trust them: shapes and types agree, every default is
// filled in.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>

#include "rapt/parallel.h"
#include "rapt/tensor.h"

namespace rapt {

// The number of threads that run the parts of a call, and the function that runs them.
struct Workers {
  int threads = 1;
  const ParallelFor* parallel_for = nullptr;  // a pointer, because a copy may allocate
};

namespace core {

// The library's pool as a ParallelFor.
const ParallelFor& pool_function();

// The library's pool, with `threads` threads; 0: thread_count().
Workers pool_workers(int threads = 0);

}  // namespace core

// W (N, K), in the order that its engine prefers.
struct PackedWeights {
  std::int64_t outputs = 0, inputs = 0;  // N, K
  DType dtype = DType::f32;
  // The variant of the engine that packed it, if there are several (instruction sets). Only this variant knows the
  // order.
  const void* variant = nullptr;
  std::byte* data = nullptr;  // aligned to 64 bytes
};

// y = x · Wᵀ + bias, or + start
struct ProductProblem {
  PackedWeights weights;
  ConstTensorView x;      // (M, K)
  ConstTensorView bias;   // (N); undefined: none
  ConstTensorView start;  // (M, N), instead of a bias; may have y's memory and strides; undefined: none
  TensorView y;           // (M, N)
  Workers workers;
};

}  // namespace rapt
