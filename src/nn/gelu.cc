#include "attention/apart.h"
#include "core/engine.h"
#include "nn/matrix_checks.h"
#include "rapt/layers.h"

namespace rapt {

namespace {

void check_same(const Checks& checks, std::string_view name, const ConstTensorView& view, const ConstTensorView& x) {
  nn::check_matrix(checks, name, view, x.dtype());
  checks.shaped(name, view, x.shape(), "that of x");
}

}  // namespace

void gelu(const TensorView& y, const ConstTensorView& x) {
  const Checks checks("gelu", x.device());
  check_same(checks, "x", x, x);
  check_same(checks, "y", y, x);
  Apart tensors(checks);
  tensors.add_input("x", x);
  tensors.add_output("y", y, "x");
  device_row(x.device()).layer->gelu(y, x, core::pool_workers());
}

void gelu_backward(const TensorView& dx, const ConstTensorView& dy, const ConstTensorView& x) {
  const Checks checks("gelu_backward", x.device());
  check_same(checks, "x", x, x);
  check_same(checks, "dy", dy, x);
  check_same(checks, "dx", dx, x);
  Apart tensors(checks);
  tensors.add_input("dy", dy);
  tensors.add_input("x", x);
  tensors.add_output("dx", dx, "dy");
  device_row(x.device()).layer->gelu_backward(dx, dy, x, core::pool_workers());
}

}  // namespace rapt
