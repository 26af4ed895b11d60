#include "results.h"

#include <array>
#include <cstddef>
#include <string>
#include <utility>

#include "arrays.h"

namespace rapt::python {

namespace {

nb::object shape_tuple(const Dims& shape) {
  nb::object tuple = nb::steal(PyTuple_New(shape.rank()));
  for (int dim = 0; dim < shape.rank(); ++dim) {
    PyTuple_SetItem(tuple.ptr(), dim, PyLong_FromLongLong(shape[dim]));  // takes over the reference
  }
  return tuple;
}

nb::object called(PyObject* result) {
  if (result == nullptr) nb::raise_python_error();
  return nb::steal(result);
}

nb::object new_numpy(const Dims& shape, DType dtype) {
  const nb::object sizes = shape_tuple(shape);
  std::array<PyObject*, 3> arguments = {nullptr, sizes.ptr(), numpy_dtype(dtype).ptr()};
  return called(
      PyObject_Vectorcall(numpy_empty().ptr(), arguments.data() + 1, 2 | PY_VECTORCALL_ARGUMENTS_OFFSET, nullptr));
}

// On the CPU, whatever the default device is.
nb::object new_torch(const Dims& shape, DType dtype) {
  static PyObject* const names = nb::make_tuple("dtype", "device").release().ptr();
  static PyObject* const device = PyUnicode_InternFromString("cpu");
  const nb::object sizes = shape_tuple(shape);
  std::array<PyObject*, 4> arguments = {nullptr, sizes.ptr(), torch_dtype(dtype).ptr(), device};
  return called(
      PyObject_Vectorcall(torch_empty().ptr(), arguments.data() + 1, 1 | PY_VECTORCALL_ARGUMENTS_OFFSET, names));
}

}  // namespace

Result::Result(Library library, const Dims& shape, DType dtype) : library_(library) {
  if (library == Library::other && has_numpy_dtype(dtype)) library_ = Library::numpy;
  if (library_ == Library::numpy && !has_numpy_dtype(dtype)) library_ = Library::other;
  switch (library_) {
    case Library::numpy: array_ = new_numpy(shape, dtype); break;
    case Library::torch: array_ = new_torch(shape, dtype); break;
    case Library::jax:
    case Library::other: array_ = nb::cast(own(Tensor(shape, dtype))); break;
  }
  view_ = Array(array_, {"rapt", "result"}, Access::write).writable_view();
}

nb::object Result::finish() {
  if (!array_.is_valid()) return nb::none();
  if (library_ == Library::numpy || library_ == Library::torch) return std::move(array_);
  return as_array(library_, nb::cast<Memory>(array_));
}

nb::object as_array(Library library, Memory memory) {
  const DType dtype = memory.view.dtype();
  nb::object object = nb::cast(std::move(memory));
  if (library == Library::torch) return nb::module_::import_("torch").attr("from_dlpack")(object);
  if (library == Library::jax) return nb::module_::import_("jax.dlpack").attr("from_dlpack")(object);
  if (has_numpy_dtype(dtype)) {
    const nb::module_ numpy = nb::module_::import_("numpy");
    // The buffer protocol has no format for bf16: its bits are exported as integers, and the dtype is set afterwards.
    const nb::object array = numpy.attr("asarray")(object);
    return dtype == DType::bf16 ? array.attr("view")(numpy_dtype(dtype)) : array;
  }
  if (dtype == DType::bf16) return object;
  return nb::steal(PyMemoryView_FromObject(object.ptr()));
}

}  // namespace rapt::python
