// The extension module rapt._rapt. Users import the package around it (rapt/__init__.py).
#include <nanobind/nanobind.h>

#include "attention.h"
#include "files.h"
#include "info.h"
#include "kv_cache.h"
#include "layer/layer.h"
#include "memory.h"
#include "rapt/error.h"
#include "wording.h"

namespace nb = nanobind;

NB_MODULE(_rapt, module) {
  module.doc() = "The rapt library, as the package rapt uses it. Import rapt instead.";
  // The library's message, with Python's names.
  nb::register_exception_translator([](const std::exception_ptr& pointer, void*) {
    try {
      std::rethrow_exception(pointer);
    } catch (const rapt::FileError& error) {
      PyErr_SetString(PyExc_ValueError, rapt::python::file_error_in_python(error.what()).c_str());
    } catch (const rapt::Error& error) {
      PyErr_SetString(PyExc_ValueError, rapt::python::in_python(error.what()).c_str());
    }
  });
  rapt::python::bind_memory(module);
  rapt::python::bind_attention(module);
  rapt::python::bind_attention_backward(module);
  rapt::python::bind_kv_cache(module);
  rapt::python::bind_files(module);
  rapt::python::bind_layer(module);
  rapt::python::bind_info(module);
  rapt::python::bind_probes(module);
}
