#include "exhibits/seen.h"

#include <algorithm>
#include <cmath>

#include "rapt/random.h"

namespace rapt::exhibits {

Seen see(const ConstTensorView& query, const ConstTensorView& key, const ConstTensorView& value,
         const AttentionOptions& options) {
  const Dims square{query.size(0), query.size(1), query.size(2), key.size(2)};
  Seen seen;
  for (Tensor* tensor : {&seen.raw, &seen.masked, &seen.weights, &seen.dropped})
    *tensor = Tensor(square, query.dtype());
  seen.out = Tensor({query.size(0), query.size(1), query.size(2), value.size(3)}, query.dtype());
  AttentionOutputs outputs{.out = seen.out.view()};
  outputs.captures = {{.stage = Stage::raw, .to = seen.raw.view()},
                      {.stage = Stage::masked, .to = seen.masked.view()},
                      {.stage = Stage::weights, .to = seen.weights.view()},
                      {.stage = Stage::dropped_weights, .to = seen.dropped.view()}};
  attention(outputs, query, key, value, options);
  return seen;
}

Tensor noise(const Dims& shape, std::uint64_t seed, double deviation) {
  Tensor tensor(shape, DType::f64);
  const std::span<double> values = tensor.values<double>();
  for (std::size_t n = 0; n < values.size(); ++n) {
    const PhiloxCounter words = philox4x32_10({static_cast<std::uint32_t>(n), 0, 0, 0x73656e65U}, philox_key(seed));
    const double radius = std::sqrt(-2.0 * std::log((words[0] + 1.0) * 0x1p-32));
    values[n] = deviation * radius * std::cos(2.0 * 3.14159265358979323846 * words[1] * 0x1p-32);
  }
  return tensor;
}

Tensor places(const Dims& shape) {
  Tensor tensor(shape, DType::f64);
  double place = 0;
  for (double& value : tensor.values<double>()) value = place++;
  return tensor;
}

ConstTensorView of_head(const Tensor& tensor, std::int64_t head) { return tensor.view().select(0, 0).select(0, head); }

double largest_difference(const ConstTensorView& a, const ConstTensorView& b) {
  const Tensor first = Tensor::copy_of(a, DType::f64), second = Tensor::copy_of(b, DType::f64);
  double largest = 0;
  for (std::size_t n = 0; n < first.values<double>().size(); ++n) {
    largest = std::max(largest, std::abs(first.values<double>()[n] - second.values<double>()[n]));
  }
  return largest;
}

double off_by(const ConstTensorView& other, const ConstTensorView& right) {
  const Tensor first = Tensor::copy_of(other, DType::f64), second = Tensor::copy_of(right, DType::f64);
  double difference = 0, size = 0;
  for (std::size_t n = 0; n < first.values<double>().size(); ++n) {
    difference += std::pow(first.values<double>()[n] - second.values<double>()[n], 2);
    size += std::pow(second.values<double>()[n], 2);
  }
  return std::sqrt(difference / size);
}

std::vector<double> row_sums(const ConstTensorView& matrix) {
  const Tensor copy = Tensor::copy_of(matrix, DType::f64);
  std::vector<double> sums;
  for (std::int64_t i = 0; i < copy.size(0); ++i) {
    double sum = 0;
    for (std::int64_t j = 0; j < copy.size(1); ++j) sum += copy.view().at<double>(i, j);
    sums.push_back(sum);
  }
  return sums;
}

std::int64_t largest_in_row(const ConstTensorView& matrix, std::int64_t row) {
  std::int64_t best = 0;
  for (std::int64_t j = 1; j < matrix.size(1); ++j) {
    if (matrix.at<double>(row, j) > matrix.at<double>(row, best)) best = j;
  }
  return best;
}

}  // namespace rapt::exhibits
