#include "bench/harness/numbers.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <span>
#include <utility>

#include "rapt/parallel.h"
#include "rapt/random.h"

namespace rapt::bench {
namespace {

// Each Philox counter gives four numbers.
void fill(const std::span<float>& values, std::uint32_t stream) {
  constexpr std::size_t kBlock = 1 << 16;
  const std::size_t blocks = (values.size() + kBlock - 1) / kBlock;
  parallel_for(static_cast<std::int64_t>(blocks), [&](std::int64_t block) {
    const std::size_t begin = static_cast<std::size_t>(block) * kBlock;
    const std::size_t end = std::min(values.size(), begin + kBlock);
    for (std::size_t n = begin; n < end; n += 4) {
      const std::uint64_t place = n / 4;
      const PhiloxCounter bits = philox4x32_10(
          {static_cast<std::uint32_t>(place), static_cast<std::uint32_t>(place >> 32), 0, stream}, {1, 2});
      for (std::size_t m = n; m < std::min(end, n + 4); ++m) {
        values[m] = static_cast<float>(bits[m - n]) * 0x1p-31F - 1.0F;
      }
    }
  });
}

}  // namespace

Tensor numbers(std::int64_t count, std::uint32_t stream, DType dtype) {
  Tensor tensor({count}, DType::f32);
  fill(tensor.values<float>(), stream);
  return dtype == DType::f32 ? std::move(tensor) : tensor.to(dtype);
}

double relative_error(const ConstTensorView& a, const ConstTensorView& b) {
  const Tensor x = Tensor::copy_of(a, DType::f64);
  const Tensor y = Tensor::copy_of(b, DType::f64);
  double wrong = 0.0;
  double right = 0.0;
  for (std::size_t n = 0; n < y.values<double>().size(); ++n) {
    const double difference = x.values<double>()[n] - y.values<double>()[n];
    wrong += difference * difference;
    right += y.values<double>()[n] * y.values<double>()[n];
  }
  if (wrong == 0.0) return 0.0;
  return right == 0.0 ? std::numeric_limits<double>::infinity() : std::sqrt(wrong / right);
}

double worse(double a, double b) { return std::isnan(a) || a > b ? a : b; }

}  // namespace rapt::bench
