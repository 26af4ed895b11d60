// Element types by their names in Python.
#pragma once

#include <nanobind/nanobind.h>

#include "arrays.h"
#include "rapt/dtype.h"

namespace rapt::python {

// "float32", "float64", "bfloat16", "float16", "bool", "int8".
const char* python_name(DType dtype);

// By name, or as the dtype object of NumPy, ml_dtypes, PyTorch or JAX: "float32", numpy.float32, torch.float32.
DType dtype(nb::handle object, const Argument& argument);

}  // namespace rapt::python
