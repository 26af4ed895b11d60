// Memory of the library's own, as Python sees it: what results are made of where no array library makes them, and what
// files lend.
#pragma once

#include <memory>

#include <nanobind/nanobind.h>

#include "rapt/tensor.h"

namespace rapt::python {

namespace nb = nanobind;

// The class rapt.Array: it lends its memory by __dlpack__ and the buffer protocol. `owner` keeps the memory.
struct Memory {
  std::shared_ptr<const void> owner;
  TensorView view;
  bool read_only = false;
};

Memory own(Tensor tensor);
Memory lend(std::shared_ptr<const void> owner, const ConstTensorView& view, bool read_only = true);

void bind_memory(nb::module_& module);

}  // namespace rapt::python
