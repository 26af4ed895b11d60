#include <cmath>

#include "models/network/parts.h"
#include "rapt/layers.h"
#include "rapt/parallel.h"

namespace rapt::models {
namespace {

float gelu_tanh(float x) {
  constexpr float kRoot = 0.7978845608028654F;  // sqrt(2 / π)
  return 0.5F * x * (1.0F + std::tanh(kRoot * (x + 0.044715F * x * x * x)));
}

// Rows are computed on several threads; the bits of an element depend only on the element.
template <class Function>
void for_each(const TensorView& y, const ConstTensorView& x, const Function& function) {
  const std::int64_t width = x.size(1);
  const auto* from = x.data_as<float>();
  auto* to = y.data_as<float>();
  parallel_for(x.size(0), [&](std::int64_t row) {
    for (std::int64_t n = row * width; n < (row + 1) * width; ++n) to[n] = function(from[n]);
  });
}

}  // namespace

void activate(Activation activation, const TensorView& y, const ConstTensorView& x) {
  switch (activation) {
    case Activation::gelu: return gelu(y, x);
    case Activation::gelu_tanh: return for_each(y, x, gelu_tanh);
    case Activation::relu: return for_each(y, x, [](float each) { return each < 0.0F ? 0.0F : each; });
  }
}

}  // namespace rapt::models
