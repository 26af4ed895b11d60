// For tests and benchmarks: how rapt reads an array, a call without the Python layer, and how a message of the library
// is reworded for Python.
#include <chrono>
#include <cstdint>

#include "arrays.h"
#include "attention.h"
#include "options.h"
#include "rapt/attention.h"
#include "wording.h"

namespace rapt::python {

namespace {

// (address, dtype, shape, strides in elements).
nb::tuple lent(nb::handle object) {
  const Array array(object, {"lent", "array"});
  nb::list shape;
  nb::list strides;
  for (const std::int64_t size : array.shape()) shape.append(size);
  for (const std::int64_t stride : array.strides()) strides.append(stride);
  return nb::make_tuple(reinterpret_cast<std::uintptr_t>(array.data()), array.element().name().c_str(),
                        nb::tuple(shape), nb::tuple(strides));
}

// Seconds taken by `calls` calls, each writing into an existing array.
double time_attention(nb::handle query, nb::handle key, nb::handle value, nb::handle options, nb::handle out,
                      std::int64_t calls) {
  const Array query_array(query, {"time_attention", "query"});
  const Array key_array(key, {"time_attention", "key"});
  const Array value_array(value, {"time_attention", "value"});
  const Array out_array(out, {"time_attention", "out"}, Access::write);
  const CallOptions call("time_attention", options);
  const AttentionOutputs outputs{.out = out_array.writable_view()};
  const ConstTensorView query_view = query_array.view();
  const ConstTensorView key_view = key_array.view();
  const ConstTensorView value_view = value_array.view();

  const nb::gil_scoped_release unlocked;
  const auto began = std::chrono::steady_clock::now();
  for (std::int64_t n = 0; n < calls; ++n) rapt::attention(outputs, query_view, key_view, value_view, call.get());
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
}

}  // namespace

void bind_probes(nb::module_& module) {
  module.def("lent", &lent, nb::arg("array"));
  module.def("time_attention", &time_attention, nb::arg("query"), nb::arg("key"), nb::arg("value"), nb::arg("options"),
             nb::arg("out"), nb::arg("calls"));
  module.def(
      "in_python", [](const char* text) { return nb::str(in_python(text).c_str()); }, nb::arg("text"));
}

}  // namespace rapt::python
