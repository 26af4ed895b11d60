// The functions of attention, as _rapt has them; rapt/_attention.py gives them their keywords.
#pragma once

#include <nanobind/nanobind.h>

namespace rapt::python {

void bind_attention(nanobind::module_& module);
void bind_attention_backward(nanobind::module_& module);
void bind_probes(nanobind::module_& module);

}  // namespace rapt::python
