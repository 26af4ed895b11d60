// Appends rows of k or v to a cache: converted, or quantized to i8 with a scale.
#include <array>
#include <cmath>
#include <cstddef>
#include <vector>

#include "cpu/convert.h"
#include "cpu/layer/layer_kernels.h"
#include "cpu/layer/layer_ops.h"
#include "cpu/layer/rows.h"

namespace rapt::cpu {

namespace {

constexpr std::int64_t kPart = 512;  // elements converted at once

// A part of a row as f32: in place, or converted into `wide`.
const float* as_f32(const ConstTensorView& view, std::int64_t offset, std::int64_t count, float* wide) {
  const std::int64_t stride = view.stride(3);
  if (view.dtype() == DType::f32 && stride == 1) return static_cast<const float*>(view.data()) + offset;
  if (stride == 1) {
    layer_kernels().widen(
        static_cast<const std::byte*>(view.data()) + offset * static_cast<std::int64_t>(size_of(view.dtype())),
        view.dtype(), wide, count);
  } else {
    load_row(view.data(), view.dtype(), offset, stride, count, wide);
  }
  return wide;
}

// Calls visit(first, numbers, count) for the parts of a row, each as f32.
template <class Visit>
void for_each_part(const ConstTensorView& view, std::int64_t offset, const Visit& visit) {
  alignas(64) std::array<float, kPart> wide;
  for (std::int64_t first = 0; first < view.size(3); first += kPart) {
    const std::int64_t count = std::min(kPart, view.size(3) - first);
    visit(first, as_f32(view, offset + first * view.stride(3), count, wide.data()), count);
  }
}

// The largest |x| of the row; NaN or infinity if an element is not finite.
float largest_of_row(const ConstTensorView& view, std::int64_t offset) {
  float largest = 0.0F;
  for_each_part(view, offset, [&](std::int64_t, const float* numbers, std::int64_t count) {
    const float part = layer_kernels().largest(numbers, count);
    if (!(part <= largest) && !std::isnan(largest)) largest = part;
  });
  return largest;
}

void append_row(const AppendProblem& problem, std::int64_t offset, std::int64_t page, std::int64_t h,
                std::int64_t row) {
  const TensorView& to = problem.to;
  auto* place = static_cast<std::byte*>(to.data()) + (page * to.stride(0) + h * to.stride(1) + row * to.stride(2)) *
                                                         static_cast<std::int64_t>(size_of(to.dtype()));
  float scale = 0.0F;
  if (to.dtype() == DType::i8) {
    const TensorView& scales = problem.scales;
    scale = largest_of_row(problem.from, offset) / 127.0F;
    static_cast<float*>(scales.data())[page * scales.stride(0) + h * scales.stride(1) + row * scales.stride(2)] = scale;
  }
  for_each_part(problem.from, offset, [&](std::int64_t first, const float* numbers, std::int64_t count) {
    std::byte* part = place + first * static_cast<std::int64_t>(size_of(to.dtype()));
    if (to.dtype() == DType::i8) {
      layer_kernels().quantize(numbers, scale, reinterpret_cast<std::int8_t*>(part), count);
    } else {
      layer_kernels().narrow(numbers, part, to.dtype(), count);
    }
  });
}

std::int64_t row_offset(const ConstTensorView& x, std::int64_t b, std::int64_t h, std::int64_t i) {
  return b * x.stride(0) + h * x.stride(1) + i * x.stride(2);
}

}  // namespace

void append(const AppendProblem& problem, const Workers& workers) {
  const ConstTensorView& from = problem.from;
  const std::int64_t heads = from.size(1);
  for (const CacheRun& run : problem.runs) {
    for_rows(workers, run.count * heads, 2 * from.size(3), [&](std::int64_t n) {
      const std::int64_t i = n / heads, h = n % heads;
      append_row(problem, row_offset(from, run.batch, h, run.token + i), run.page, h, run.row + i);
    });
  }
}

std::int64_t find_not_finite(const ConstTensorView& x, std::span<const std::int64_t> counts,
                             const Workers& /*workers*/) {
  for (std::int64_t b = 0; b < x.size(0); ++b) {
    const std::int64_t tokens = counts.empty() ? x.size(2) : counts[static_cast<std::size_t>(b)];
    for (std::int64_t h = 0; h < x.size(1); ++h) {
      for (std::int64_t i = 0; i < tokens; ++i) {
        if (!std::isfinite(largest_of_row(x, row_offset(x, b, h, i)))) return (b * x.size(1) + h) * x.size(2) + i;
      }
    }
  }
  return -1;
}

}  // namespace rapt::cpu
