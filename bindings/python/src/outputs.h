// An output of a call: the caller's array, or a new one of the query's array type.
#pragma once

#include <nanobind/nanobind.h>

#include "arrays.h"
#include "results.h"

namespace rapt::python {

class Output {
 public:
  Output() = default;  // none
  Output(nb::handle given, const Argument& argument)
      : object_(nb::borrow(given)), given_(given, argument, Access::write) {}
  Output(Library library, const Dims& shape, DType dtype) : made_(library, shape, dtype) {}

  TensorView view() const { return given_.defined() ? given_.writable_view() : made_.view(); }
  nb::object finish() { return given_.defined() ? object_ : made_.finish(); }

 private:
  nb::object object_;
  Array given_;
  Result made_;
};

}  // namespace rapt::python
