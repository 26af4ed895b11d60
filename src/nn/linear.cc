#include "nn/row_work.h"
#include "rapt/layers.h"
#include "rapt/packed_matrix.h"

namespace rapt {

void linear(const TensorView& y, const ConstTensorView& x, const ConstTensorView& weight, const ConstTensorView& bias) {
  PackedMatrix(weight).multiply(x, y, {.bias = bias});
}

void linear_backward(const LinearGradients& gradients, const ConstTensorView& dy, const ConstTensorView& x,
                     const ConstTensorView& weight) {
  const Checks checks("linear_backward");
  const DType dtype = dy.dtype();
  nn::check_matrix(checks, "dy", dy, dtype);
  const TensorView &dx = gradients.dx, &dweight = gradients.dweight, &dbias = gradients.dbias;
  if (dx.defined()) PackedMatrix(weight.transpose(0, 1)).multiply(dy, dx);
  if (dweight.defined()) {
    PackedMatrix(x.transpose(0, 1)).multiply(dy.transpose(0, 1), dweight, {.start = dweight});
  }
  if (!dbias.defined()) return;
  nn::check_vector(checks, "dbias", dbias, dy.size(1), dtype);
  nn::add_sums(dy, dbias);
}

}  // namespace rapt
