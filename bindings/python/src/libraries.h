// The array libraries loaded in this process: which one an array belongs to, and the functions rapt needs from each,
// looked up once.
#pragma once

#include <cstdint>

#include <nanobind/nanobind.h>

#include "dlpack.h"
#include "rapt/dtype.h"

namespace rapt::python {

namespace nb = nanobind;

enum class Library : std::uint8_t { numpy, torch, jax, other };

// The library of an array. Imports nothing: if the object exists, its library is loaded.
Library library_of(nb::handle object);

// numpy.ndarray. Requires that NumPy is loaded.
nb::handle numpy_array_type();
// numpy.empty, and NumPy's dtype object for a DType. For bf16 the dtype object comes from ml_dtypes, which is then
// imported. False if NumPy, or ml_dtypes for bf16, is not installed.
bool has_numpy();
bool has_numpy_dtype(DType dtype);
nb::handle numpy_empty();
nb::handle numpy_dtype(DType dtype);

// torch.Tensor, torch.empty, torch.float32 and so on. Requires that torch is loaded.
nb::handle torch_tensor_type();
nb::handle torch_empty();
nb::handle torch_dtype(DType dtype);
// PyTorch's exchange API, for objects that are exactly torch.Tensor; null if this PyTorch has no such API.
const dlpack::ExchangeApi* torch_exchange_api();

}  // namespace rapt::python
