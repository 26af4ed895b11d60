// The attention functions of the module _rapt; rapt/_attention.py adds the keywords.
#pragma once

#include <nanobind/nanobind.h>

namespace rapt::python {

void bind_attention(nanobind::module_& module);
void bind_attention_backward(nanobind::module_& module);
void bind_probes(nanobind::module_& module);

}  // namespace rapt::python
