// Attention with its intermediate results, and helpers for exhibits.
#pragma once

#include <cstdint>
#include <vector>

#include "rapt/attention.h"
#include "rapt/tensor.h"

namespace rapt::exhibits {

struct Seen {
  Tensor raw, masked, weights;  // (B, H, Lq, Lk)
  Tensor dropped;               // weights after dropout
  Tensor out;                   // (B, H, Lq, Dv)
};
Seen see(const ConstTensorView& query, const ConstTensorView& key, const ConstTensorView& value,
         const AttentionOptions& options = {});

// f64 numbers from a normal distribution: a pure function of shape and seed.
Tensor noise(const Dims& shape, std::uint64_t seed, double deviation = 1.0);
Tensor places(const Dims& shape);  // 0, 1, 2, …: each number is its own memory offset

// One head's (Lq, Lk), or (L, D), of batch row 0.
ConstTensorView of_head(const Tensor& tensor, std::int64_t head);
double largest_difference(const ConstTensorView& a, const ConstTensorView& b);
double off_by(const ConstTensorView& other, const ConstTensorView& right);  // |other − right| / |right|
std::vector<double> row_sums(const ConstTensorView& matrix);
std::int64_t largest_in_row(const ConstTensorView& matrix, std::int64_t row);

}  // namespace rapt::exhibits
