// Element types by the names that Python gives them.
#pragma once

#include <nanobind/nanobind.h>

#include "arrays.h"
#include "rapt/dtype.h"

namespace rapt::python {

// "float32", "float64", "bfloat16", "float16", "bool", "int8".
const char* python_name(DType dtype);

// By its name, or by NumPy's, ml_dtypes', PyTorch's or JAX's object for it: "float32", numpy.float32, torch.float32.
DType dtype(nb::handle object, const Argument& argument);

}  // namespace rapt::python
