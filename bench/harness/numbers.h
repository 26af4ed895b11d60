// Input numbers for benchmarks, and error measures.
#pragma once

#include <cstdint>

#include "rapt/dtype.h"
#include "rapt/tensor.h"

namespace rapt::bench {

// Random numbers in [-1, 1); each depends only on the stream and its own index.
Tensor numbers(std::int64_t count, std::uint32_t stream, DType dtype);

// |a − b| / |b|, over all elements; 0 if a = b.
double relative_error(const ConstTensorView& a, const ConstTensorView& b);
double worse(double a, double b);  // NaN is worst

}  // namespace rapt::bench
