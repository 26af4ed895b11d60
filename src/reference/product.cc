// y = x · Wᵀ + bias, or + start, by the plain formula, summed in double.
#include "core/copy.h"
#include "core/elements.h"
#include "reference/passes.h"

namespace rapt::reference {

// Here, packed means row-major.
std::size_t packed_bytes(const PackedWeights& weights) {
  return static_cast<std::size_t>(weights.outputs * weights.inputs) * size_of(weights.dtype);
}

void pack(const ConstTensorView& from, const PackedWeights& to, const Workers& /*workers*/) {
  core::copy_elements(from, TensorView(to.data, to.dtype, {to.outputs, to.inputs}));
}

Plan plan_product(const ProductProblem& /*problem*/) { return {}; }

void multiply(const ProductProblem& problem, const Plan& /*plan*/, const Buffers& /*buffers*/) {
  const auto& [weights, x, bias, start, y, workers] = problem;
  for (std::int64_t m = 0; m < y.size(0); ++m) {
    for (std::int64_t n = 0; n < weights.outputs; ++n) {
      double sum = 0.0;
      if (bias.defined()) sum = load(bias.data(), bias.dtype(), n * bias.stride(0));
      if (start.defined()) sum = load(start.data(), start.dtype(), m * start.stride(0) + n * start.stride(1));
      for (std::int64_t k = 0; k < weights.inputs; ++k) {
        sum += load(x.data(), x.dtype(), m * x.stride(0) + k * x.stride(1)) *
               load(weights.data, weights.dtype, n * weights.inputs + k);
      }
      store(y.data(), y.dtype(), m * y.stride(0) + n * y.stride(1), sum);
    }
  }
}

}  // namespace rapt::reference
