#include "attention/apart.h"
#include "core/engine.h"
#include "nn/matrix_checks.h"
#include "rapt/layers.h"

namespace rapt {

namespace {

void check_parameters(const Checks& checks, const ConstTensorView& x, const ConstTensorView& weight,
                      const ConstTensorView& bias, double epsilon) {
  nn::check_vector(checks, "weight", weight, x.size(1), x.dtype());
  if (bias.defined()) nn::check_vector(checks, "bias", bias, x.size(1), x.dtype());
  checks.require(x.size(1) > 0, "x has rows of length 0; a row must have at least 1 number");
  checks.require(epsilon >= 0.0, "epsilon is ", epsilon, "; it must be at least 0");
}

}  // namespace

void layer_norm(const TensorView& y, const ConstTensorView& x, const ConstTensorView& weight,
                const ConstTensorView& bias, double epsilon) {
  const Checks checks("layer_norm", x.device());
  nn::check_matrix(checks, "x", x, x.dtype());
  nn::check_matrix(checks, "y", y, x.dtype());
  checks.shaped("y", y, x.shape(), "that of x");
  check_parameters(checks, x, weight, bias, epsilon);
  Apart tensors(checks);
  tensors.add_input("x", x);
  tensors.add_input("weight", weight);
  tensors.add_input("bias", bias);
  tensors.add_output("y", y, "x");
  device_row(x.device()).layer->norm({y, x, weight, bias, epsilon}, core::pool_workers());
}

void layer_norm_backward(const LayerNormGradients& gradients, const ConstTensorView& dy, const ConstTensorView& x,
                         const ConstTensorView& weight, double epsilon) {
  const Checks checks("layer_norm_backward", x.device());
  const TensorView &dx = gradients.dx, &dweight = gradients.dweight, &dbias = gradients.dbias;
  nn::check_matrix(checks, "x", x, x.dtype());
  nn::check_matrix(checks, "dy", dy, x.dtype());
  checks.shaped("dy", dy, x.shape(), "that of x");
  check_parameters(checks, x, weight, {}, epsilon);
  const std::int64_t size = x.size(1);
  if (dx.defined()) {
    nn::check_matrix(checks, "dx", dx, x.dtype());
    checks.shaped("dx", dx, x.shape(), "that of x");
  }
  if (dweight.defined()) nn::check_vector(checks, "dweight", dweight, size, x.dtype());
  if (dbias.defined()) nn::check_vector(checks, "dbias", dbias, size, x.dtype());
  Apart tensors(checks);
  tensors.add_input("dy", dy);
  tensors.add_input("x", x);
  tensors.add_input("weight", weight);
  tensors.add_output("dx", dx, "dy");
  tensors.add_output("dweight", dweight);
  tensors.add_output("dbias", dbias);
  device_row(x.device()).layer->norm_backward({dx, dweight, dbias, dy, x, weight, epsilon}, core::pool_workers());
}

}  // namespace rapt
