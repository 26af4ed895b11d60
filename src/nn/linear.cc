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
  nn::with_float_type(dtype, [&](auto type) {
    using T = decltype(type);
    T* sums = static_cast<T*>(dbias.data());
    for (std::int64_t t = 0; t < dy.size(0); ++t) {
      const T* row = nn::row_of<T>(dy, t);
      for (std::int64_t n = 0; n < dy.size(1); ++n) sums[n] += row[n];
    }
  });
}

}  // namespace rapt
