// Result arrays, of the query's array type.
//
//   Result out(Library::torch, {2, 8, 10, 64}, DType::f32);
//   …                                 // fill out.view()
//   return out.finish();              // a torch.Tensor
#pragma once

#include <nanobind/nanobind.h>

#include "libraries.h"
#include "memory.h"
#include "rapt/tensor.h"

namespace rapt::python {

namespace nb = nanobind;

// A new array with uninitialized memory. For Library::other it is a NumPy array if NumPy is installed, otherwise a
// memoryview; in bf16 it is a NumPy array if ml_dtypes is installed too, otherwise a rapt.Array.
class Result {
 public:
  Result() = default;  // none
  Result(Library library, const Dims& shape, DType dtype);

  const TensorView& view() const { return view_; }
  nb::object finish();  // Python's None if there is no array

 private:
  Library library_ = Library::other;
  nb::object array_;
  TensorView view_{};
};

// Our memory as an array of this library: no copy, except that JAX copies memory that is not aligned for it.
nb::object as_array(Library library, Memory memory);

}  // namespace rapt::python
