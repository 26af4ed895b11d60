#include "attention/apart.h"
#include "core/engine.h"
#include "nn/matrix_checks.h"
#include "rapt/layers.h"
#include "rapt/packed_matrix.h"

namespace rapt {

void linear(const TensorView& y, const ConstTensorView& x, const ConstTensorView& weight, const ConstTensorView& bias) {
  PackedMatrix(weight).multiply(x, y, {.bias = bias});
}

void linear_backward(const LinearGradients& gradients, const ConstTensorView& dy, const ConstTensorView& x,
                     const ConstTensorView& weight) {
  const Checks checks("linear_backward", dy.device());
  const DType dtype = dy.dtype();
  nn::check_matrix(checks, "dy", dy, dtype);
  const TensorView &dx = gradients.dx, &dweight = gradients.dweight, &dbias = gradients.dbias;
  Apart tensors(checks);
  tensors.add_input("dy", dy);
  tensors.add_input("x", x);
  tensors.add_input("weight", weight);
  tensors.add_output("dx", dx);
  tensors.add_output("dweight", dweight);
  tensors.add_output("dbias", dbias);
  if (dx.defined()) PackedMatrix(weight.transpose(0, 1)).multiply(dy, dx);
  if (dweight.defined()) {
    PackedMatrix(x.transpose(0, 1)).multiply(dy.transpose(0, 1), dweight, {.start = dweight});
  }
  if (!dbias.defined()) return;
  nn::check_vector(checks, "dbias", dbias, dy.size(1), dtype);
  device_row(dy.device()).layer->add_row_sums(dy, dbias, core::pool_workers());
}

}  // namespace rapt
