#include <cmath>

#include "attention/checks.h"
#include "core/engine.h"
#include "rapt/layers.h"

namespace rapt {

double clip_gradients(std::span<Tensor> gradients, double largest) {
  const Checks checks("clip_gradients");
  checks.require(largest > 0.0, "largest is ", largest, "; it must be positive");
  for (const Tensor& gradient : gradients) {
    checks.require(gradient.dtype() == DType::f32 || gradient.dtype() == DType::f64, "a gradient is ", gradient.dtype(),
                   "; it must be f32 or f64");
  }
  const Workers workers = core::pool_workers();
  double squares = 0.0;
  for (const Tensor& gradient : gradients) {
    if (gradient.count() > 0) {
      squares = device_row(gradient.device()).layer->add_squares(squares, gradient.view(), workers);
    }
  }
  const double norm = std::sqrt(squares);
  if (!(norm > largest)) return norm;
  for (Tensor& gradient : gradients) {
    if (gradient.count() > 0) device_row(gradient.device()).layer->scale(gradient.view(), largest / norm, workers);
  }
  return norm;
}

Adam::Adam(const Dims& shape, DType dtype, Device device)
    : first_(shape, dtype, device), second_(shape, dtype, device) {
  Checks("Adam").require(dtype == DType::f32 || dtype == DType::f64, "dtype is ", dtype, "; it must be f32 or f64");
}

void Adam::step(const TensorView& parameter, const ConstTensorView& gradient, const AdamOptions& options) {
  const Checks checks("Adam::step", first_.device());
  for (const auto& [name, view] :
       {std::pair("parameter", ConstTensorView(parameter)), std::pair("gradient", gradient)}) {
    checks.shaped(name, view, first_.shape(), "that of the moments");
    checks.require(view.dtype() == first_.dtype(), name, " is ", view.dtype(), ", the moments are ", first_.dtype());
    checks.require(view.is_contiguous(), name, " has strides ", view.strides(), "; it must be contiguous");
  }
  ++steps_;
  const double first_bias = 1.0 - std::pow(options.beta1, static_cast<double>(steps_));
  const double second_bias = 1.0 - std::pow(options.beta2, static_cast<double>(steps_));
  device_row(first_.device())
      .layer->adam({.parameter = parameter,
                    .first = first_,
                    .second = second_,
                    .gradient = gradient,
                    .beta1 = options.beta1,
                    .beta2 = options.beta2,
                    .kept = 1.0 - options.rate * options.weight_decay,
                    .step = options.rate / first_bias,
                    .inverse = 1.0 / std::sqrt(second_bias),
                    .epsilon = options.epsilon},
                   core::pool_workers());
}

void Adam::restore(std::int64_t steps, const ConstTensorView& first, const ConstTensorView& second) {
  const Checks checks("Adam::restore", first.device());
  checks.require(steps >= 0, "steps is ", steps, "; it must be at least 0");
  checks.shaped("first", first, first_.shape(), "that of the parameter");
  checks.shaped("second", second, second_.shape(), "that of the parameter");
  steps_ = steps;
  copy(first, first_);
  copy(second, second_);
}

}  // namespace rapt
