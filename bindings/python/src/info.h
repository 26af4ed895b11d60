// Information about the library and the machine: version, threads, instruction sets.
#pragma once

#include <nanobind/nanobind.h>

namespace rapt::python {

void bind_info(nanobind::module_& module);

}  // namespace rapt::python
