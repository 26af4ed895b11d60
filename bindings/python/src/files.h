// Safetensors, .npy and .npz files.
#pragma once

#include <nanobind/nanobind.h>

namespace rapt::python {

void bind_files(nanobind::module_& module);

}  // namespace rapt::python
