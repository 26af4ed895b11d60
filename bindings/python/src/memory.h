// Memory owned by rapt, as seen from Python: results when no array library is used, and the contents of files.
#pragma once

#include <memory>

#include <nanobind/nanobind.h>

#include "rapt/tensor.h"

namespace rapt::python {

namespace nb = nanobind;

// The class rapt.Array: it exports its memory through __dlpack__ and the buffer protocol. `owner` keeps the memory
// alive.
struct Memory {
  std::shared_ptr<const void> owner;
  TensorView view;
  bool read_only = false;
};

Memory own(Tensor tensor);
Memory lend(std::shared_ptr<const void> owner, const ConstTensorView& view, bool read_only = true);

void bind_memory(nb::module_& module);

}  // namespace rapt::python
