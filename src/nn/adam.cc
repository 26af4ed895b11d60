#include <cmath>
#include <cstddef>

#include "nn/row_work.h"
#include "rapt/layers.h"

namespace rapt {

double clip_gradients(std::span<Tensor> gradients, double largest) {
  const Checks checks("clip_gradients");
  checks.require(largest > 0.0, "largest is ", largest, "; it must be positive");
  double squares = 0.0;
  for (const Tensor& gradient : gradients) {
    nn::with_float_type(gradient.dtype(), [&](auto type) {
      for (const auto value : gradient.values<decltype(type)>()) squares += static_cast<double>(value) * value;
    });
  }
  const double norm = std::sqrt(squares);
  if (!(norm > largest)) return norm;
  const double factor = largest / norm;
  for (Tensor& gradient : gradients) {
    nn::with_float_type(gradient.dtype(), [&](auto type) {
      for (auto& value : gradient.values<decltype(type)>()) value = static_cast<decltype(type)>(value * factor);
    });
  }
  return norm;
}

Adam::Adam(const Dims& shape, DType dtype) : first_(shape, dtype), second_(shape, dtype) {
  Checks("Adam").require(dtype == DType::f32 || dtype == DType::f64, "dtype is ", dtype, "; it must be f32 or f64");
}

void Adam::step(const TensorView& parameter, const ConstTensorView& gradient, const AdamOptions& options) {
  const Checks checks("Adam::step");
  for (const auto& [name, view] :
       {std::pair("parameter", ConstTensorView(parameter)), std::pair("gradient", gradient)}) {
    checks.shaped(name, view, first_.shape(), "that of the moments");
    checks.require(view.dtype() == first_.dtype(), name, " is ", view.dtype(), ", the moments are ", first_.dtype());
    checks.require(view.is_contiguous(), name, " has strides ", view.strides(), "; it must be contiguous");
  }
  ++steps_;
  const double first_bias = 1.0 - std::pow(options.beta1, static_cast<double>(steps_));
  const double second_bias = 1.0 - std::pow(options.beta2, static_cast<double>(steps_));
  nn::with_float_type(first_.dtype(), [&](auto type) {
    using T = decltype(type);
    const std::span<T> first = first_.values<T>(), second = second_.values<T>();
    const auto* g = static_cast<const T*>(gradient.data());
    auto* p = static_cast<T*>(parameter.data());
    const auto keep1 = static_cast<T>(options.beta1), take1 = static_cast<T>(1.0 - options.beta1);
    const auto keep2 = static_cast<T>(options.beta2), take2 = static_cast<T>(1.0 - options.beta2);
    const auto kept = static_cast<T>(1.0 - options.rate * options.weight_decay);
    const auto step = static_cast<T>(options.rate / first_bias);
    const auto inverse = static_cast<T>(1.0 / std::sqrt(second_bias)), tiny = static_cast<T>(options.epsilon);
    for (std::size_t n = 0; n < first.size(); ++n) {
      first[n] = keep1 * first[n] + take1 * g[n];
      second[n] = keep2 * second[n] + take2 * g[n] * g[n];
      p[n] = kept * p[n] - step * first[n] / (std::sqrt(second[n]) * inverse + tiny);
    }
  });
}

void Adam::restore(std::int64_t steps, const ConstTensorView& first, const ConstTensorView& second) {
  const Checks checks("Adam::restore");
  checks.require(steps >= 0, "steps is ", steps, "; it must be at least 0");
  checks.shaped("first", first, first_.shape(), "that of the parameter");
  checks.shaped("second", second, second_.shape(), "that of the parameter");
  steps_ = steps;
  copy(first, first_);
  copy(second, second_);
}

}  // namespace rapt
