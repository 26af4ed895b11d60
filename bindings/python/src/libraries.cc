#include "libraries.h"

#include <array>
#include <cstddef>
#include <string_view>

#include "dtypes.h"

namespace rapt::python {

namespace {

constexpr std::size_t kTypes = 6;

constexpr std::size_t index_of(DType dtype) { return static_cast<std::size_t>(dtype); }

// Cached lookups. Never destroyed: the interpreter may shut down before static objects are destroyed.
struct Cache {
  PyTypeObject* ndarray = nullptr;
  PyTypeObject* tensor = nullptr;
  bool numpy_missing = false;
  nb::object empty;
  nb::object torch_empty;
  std::array<nb::object, kTypes> numpy_types;
  std::array<nb::object, kTypes> torch_types;
  const dlpack::ExchangeApi* exchange = nullptr;
};

Cache& cache() {
  static auto* const cache = new Cache;
  return *cache;
}

// A module of sys.modules, which may still be partially imported; empty if it is not loaded.
nb::object loaded(const char* name) {
  const nb::object modules = nb::module_::import_("sys").attr("modules");
  PyObject* module = PyDict_GetItemString(modules.ptr(), name);
  return module == nullptr ? nb::object() : nb::borrow(module);
}

// The type `name` of a loaded module. It is kept here, so it lives as long as the process.
PyTypeObject* loaded_type(const char* module_name, const char* name) {
  const nb::object module = loaded(module_name);
  if (!module.is_valid() || !nb::hasattr(module, name)) return nullptr;
  return reinterpret_cast<PyTypeObject*>(module.attr(name).inc_ref().ptr());
}

bool is_numpy(PyTypeObject* type) {
  Cache& known = cache();
  if (known.ndarray == nullptr) known.ndarray = loaded_type("numpy", "ndarray");
  return known.ndarray != nullptr && (type == known.ndarray || PyType_IsSubtype(type, known.ndarray) != 0);
}

bool is_torch(PyTypeObject* type) {
  Cache& known = cache();
  if (known.tensor == nullptr) {
    known.tensor = loaded_type("torch", "Tensor");
    if (known.tensor == nullptr) return false;
    const nb::handle tensor(reinterpret_cast<PyObject*>(known.tensor));
    if (nb::hasattr(tensor, "__dlpack_c_exchange_api__")) {
      const nb::object capsule = tensor.attr("__dlpack_c_exchange_api__");
      const auto* api =
          static_cast<const dlpack::ExchangeApi*>(PyCapsule_GetPointer(capsule.ptr(), dlpack::ExchangeApi::kName));
      if (api == nullptr) PyErr_Clear();
      if (api != nullptr && api->version.major == 1) known.exchange = api;
    }
  }
  return type == known.tensor || PyType_IsSubtype(type, known.tensor) != 0;
}

// JAX's arrays have several classes, from jax and jaxlib.
bool is_jax(PyTypeObject* type) {
  const nb::object module = nb::getattr(nb::handle(reinterpret_cast<PyObject*>(type)), "__module__", nb::none());
  if (!nb::isinstance<nb::str>(module)) return false;
  const std::string_view name = nb::borrow<nb::str>(module).c_str();
  return name == "jax" || name.starts_with("jax.") || name == "jaxlib" || name.starts_with("jaxlib.");
}

// An attribute of a module that may not be installed.
nb::object imported(const char* module, const char* name) {
  try {
    return nb::module_::import_(module).attr(name);
  } catch (nb::python_error& error) {
    if (!error.matches(PyExc_ImportError)) throw;
    return {};
  }
}

}  // namespace

Library library_of(nb::handle object) {
  if (PyMemoryView_Check(object.ptr())) return Library::other;
  PyTypeObject* type = Py_TYPE(object.ptr());
  if (is_numpy(type)) return Library::numpy;
  if (is_torch(type)) return Library::torch;
  return is_jax(type) ? Library::jax : Library::other;
}

bool has_numpy() {
  Cache& known = cache();
  if (known.empty.is_valid()) return true;
  if (known.numpy_missing) return false;
  known.empty = imported("numpy", "empty");
  known.numpy_missing = !known.empty.is_valid();
  return !known.numpy_missing;
}

bool has_numpy_dtype(DType dtype) {
  if (!has_numpy()) return false;
  nb::object& known = cache().numpy_types[index_of(dtype)];
  if (!known.is_valid()) {
    const nb::object type =
        dtype == DType::bf16 ? imported("ml_dtypes", "bfloat16") : nb::object(nb::str(python_name(dtype)));
    if (!type.is_valid()) return false;
    known = nb::module_::import_("numpy").attr("dtype")(type);
  }
  return true;
}

nb::handle numpy_array_type() { return reinterpret_cast<PyObject*>(cache().ndarray); }

nb::handle numpy_empty() { return cache().empty; }

nb::handle numpy_dtype(DType dtype) { return cache().numpy_types[index_of(dtype)]; }

nb::handle torch_tensor_type() { return reinterpret_cast<PyObject*>(cache().tensor); }

nb::handle torch_empty() {
  nb::object& known = cache().torch_empty;
  if (!known.is_valid()) known = nb::module_::import_("torch").attr("empty");
  return known;
}

nb::handle torch_dtype(DType dtype) {
  nb::object& known = cache().torch_types[index_of(dtype)];
  if (!known.is_valid()) known = nb::module_::import_("torch").attr(python_name(dtype));
  return known;
}

const dlpack::ExchangeApi* torch_exchange_api() { return cache().exchange; }

}  // namespace rapt::python
