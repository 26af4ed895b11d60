#include "arrays.h"

#include <cstddef>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "dlpack.h"
#include "libraries.h"

namespace rapt::python {

namespace {

constexpr const char* kSupported =
    "rapt computes with float32, float64, bfloat16 and float16, and takes bool masks and int8 keys and values";
constexpr const char* kTaken =
    "rapt takes arrays: numpy.ndarray, torch.Tensor, jax.Array, memoryview, and others that have __dlpack__ or the "
    "buffer protocol";

// NumPy's description of an array, from __array_struct__. Unlike the buffer protocol, it supports every dtype, and it
// is fast. https://numpy.org/doc/stable/reference/arrays.interface.html
struct ArrayInterface {
  static constexpr int kNotSwapped = 0x200;
  static constexpr int kWriteable = 0x400;

  int two;
  int rank;
  char kind;
  int item_size;
  int flags;
  const Py_ssize_t* shape;
  const Py_ssize_t* strides;  // in bytes
  void* data;
  PyObject* description;
};

// NumPy's name for the type, which says more than "<V2".
std::string numpy_name(nb::handle object) { return nb::str(object.attr("dtype").attr("name")).c_str(); }

// numpy.ma.MaskedArray, a subclass of numpy.ndarray.
bool is_masked(nb::handle object) {
  return !object.type().is(numpy_array_type()) && type_name_of(object).starts_with("numpy.ma.");
}

bool is_bfloat16(nb::handle object) {
  const nb::object dtype = object.attr("dtype");
  if (dtype.is(numpy_dtype(DType::bf16))) return true;
  if (numpy_name(object) != "bfloat16") return false;
  has_numpy_dtype(DType::bf16);  // so that the next call finds it by its address
  return true;
}

// Looking up a missing attribute takes a microsecond, so it is skipped for memoryview.
bool has_dlpack(nb::handle object) { return !PyMemoryView_Check(object.ptr()) && nb::hasattr(object, "__dlpack__"); }

}  // namespace

// Fills an Array through whichever protocol the object supports.
class ArrayReader {
 public:
  ArrayReader(Array& array, nb::handle object, Access access)
      : array_(array), object_(object), argument_(array.argument_), access_(access) {}

  void read() {
    const Library library = library_of(object_);
    if (library == Library::numpy) {
      read_numpy();
    } else if (library == Library::torch) {
      read_torch();
    } else if (library == Library::jax && access_ == Access::write) {
      wrong_value(argument_, "is a JAX array, which cannot be written; omit it, and use the returned array");
    } else if (has_dlpack(object_)) {
      read_dlpack();
    } else if (PyObject_CheckBuffer(object_.ptr()) != 0) {
      read_buffer();
    } else {
      const std::string text = std::string(argument_.function) + ": " + argument_.name + " is of type " +
                               type_name_of(object_) + "; " + kTaken;
      throw nb::type_error(text.c_str());
    }
    array_.defined_ = true;
  }

 private:
  // The object itself must be kept alive.
  void keep_object() {
    array_.loan_ = {object_.inc_ref().ptr(), [](void* object) { Py_DECREF(static_cast<PyObject*>(object)); }};
  }

  void read_numpy() {
    if (is_masked(object_)) {
      wrong_value(argument_, "is a masked array, and its mask would be ignored; pass " + std::string(argument_.name) +
                                 ".filled(0), and the mask as a rapt.Mask");
    }
    static PyObject* const name = PyUnicode_InternFromString("__array_struct__");
    const nb::object capsule = nb::steal(PyObject_GetAttr(object_.ptr(), name));
    if (!capsule.is_valid()) nb::raise_python_error();
    const auto* lent = static_cast<const ArrayInterface*>(PyCapsule_GetPointer(capsule.ptr(), nullptr));
    if (lent == nullptr) nb::raise_python_error();

    array_.element_ = {lent->kind, lent->item_size};
    if (std::string_view("fbiuc").find(lent->kind) == std::string_view::npos) {
      if (!is_bfloat16(object_)) wrong_value(argument_, "holds " + numpy_name(object_) + "; " + kSupported);
      array_.element_.kind = 'B';
    }
    if ((lent->flags & ArrayInterface::kNotSwapped) == 0) refuse_swapped();
    set_layout(lent->data, lent->shape, lent->strides, lent->rank);
    check_writable((lent->flags & ArrayInterface::kWriteable) != 0);
    keep_object();
  }

  void read_buffer() {
    auto lent = std::make_unique<Py_buffer>();
    if (PyObject_GetBuffer(object_.ptr(), lent.get(), PyBUF_RECORDS_RO) != 0) {
      nb::python_error error;
      nb::raise_from(error, PyExc_ValueError, "%s: %s does not expose its memory with strides", argument_.function,
                     argument_.name);
    }
    array_.loan_ = {lent.release(), [](void* loan) {
                      auto* buffer = static_cast<Py_buffer*>(loan);
                      PyBuffer_Release(buffer);
                      delete buffer;
                    }};
    const auto& buffer = *static_cast<const Py_buffer*>(array_.loan_.get());
    const std::string_view format = buffer.format == nullptr ? "B" : buffer.format;
    const std::optional<FormatElement> element = element_of_format(format, static_cast<int>(buffer.itemsize));
    if (!element) {
      wrong_value(argument_, "has elements of format '" + std::string(format) + "'; " + kSupported);
    }
    array_.element_ = element->type;
    if (element->swapped) refuse_swapped();
    set_layout(buffer.buf, buffer.shape, buffer.strides, buffer.ndim);
    check_writable(buffer.readonly == 0);
  }

  void read_torch() {
    static PyObject* const requires_grad = PyUnicode_InternFromString("requires_grad");
    static PyObject* const is_neg = PyUnicode_InternFromString("is_neg");
    if (said_true(PyObject_GetAttr(object_.ptr(), requires_grad))) {
      wrong_value(argument_, "requires grad, and rapt does not record gradients; pass " + std::string(argument_.name) +
                                 ".detach(), and compute gradients with rapt.attention_backward");
    }
    PyObject* const self = object_.ptr();
    if (said_true(PyObject_VectorcallMethod(is_neg, &self, 1,
                                            nullptr))) {  // DLPack has no negative bit, yet PyTorch exports such views
      wrong_value(argument_,
                  "is a view with the negative bit set; pass " + std::string(argument_.name) + ".resolve_neg()");
    }
    const dlpack::ExchangeApi* api = torch_exchange_api();
    const nb::handle type(reinterpret_cast<PyObject*>(Py_TYPE(object_.ptr())));
    if (api == nullptr || !type.is(torch_tensor_type())) return read_dlpack();

    dlpack::ManagedTensorVersioned* lent = nullptr;
    if (api->from_object(object_.ptr(), &lent) != 0) refuse_loan();
    keep(lent);
  }

  static bool said_true(PyObject* answer) {
    if (answer == nullptr) nb::raise_python_error();
    return nb::steal(answer).is(Py_True);
  }

  void read_dlpack() {
    const nb::object capsule = dlpack_capsule();
    const char* name = PyCapsule_GetName(capsule.ptr());
    if (name != nullptr && std::strcmp(name, dlpack::ManagedTensorVersioned::kName) == 0) {
      keep(taken<dlpack::ManagedTensorVersioned>(capsule));
    } else if (name != nullptr && std::strcmp(name, dlpack::ManagedTensor::kName) == 0) {
      keep(taken<dlpack::ManagedTensor>(capsule));
    } else {
      PyErr_Clear();
      wrong_value(argument_, "has a __dlpack__ that returned no DLPack capsule");
    }
  }

  // Requests version 1, which has a read-only flag; producers that do not know max_version are called without it.
  nb::object dlpack_capsule() {
    const nb::object lend = object_.attr("__dlpack__");
    try {
      return lend(nb::arg("max_version") = nb::make_tuple(1, 0));
    } catch (nb::python_error& error) {
      if (!error.matches(PyExc_TypeError)) {
        error.restore();
        refuse_loan();
      }
    }
    PyObject* capsule = PyObject_CallNoArgs(lend.ptr());
    if (capsule == nullptr) refuse_loan();
    return nb::steal(capsule);
  }

  template <class Managed>
  static Managed* taken(const nb::object& capsule) {
    auto* managed = static_cast<Managed*>(PyCapsule_GetPointer(capsule.ptr(), Managed::kName));
    if (managed == nullptr || PyCapsule_SetName(capsule.ptr(), Managed::kUsedName) != 0) nb::raise_python_error();
    return managed;
  }

  template <class Managed>
  void keep(Managed* lent) {
    array_.loan_ = {lent, [](void* loan) {
                      auto* managed = static_cast<Managed*>(loan);
                      if (managed->deleter != nullptr) managed->deleter(managed);
                    }};
    bool writable = true;
    if constexpr (requires { lent->flags; }) {
      if (lent->version.major != 1) {
        wrong_value(argument_,
                    "uses DLPack version " + std::to_string(lent->version.major) + "; rapt supports versions 0 and 1");
      }
      writable = (lent->flags & Managed::kReadOnly) == 0;
    }
    read_tensor(lent->tensor);
    check_writable(writable);
  }

  void read_tensor(const dlpack::Tensor& lent) {
    if (lent.device.type != dlpack::kCpu) {
      const bool cuda = lent.device.type == dlpack::kCuda;
      const std::string device = cuda ? "cuda:" + std::to_string(lent.device.index)
                                      : "a device of DLPack type " + std::to_string(lent.device.type);
      wrong_value(argument_, "is on " + device + "; rapt computes on the CPU: pass " + argument_.name +
                                 ".cpu(), or a copy in host memory");
    }
    if (lent.type.lanes != 1 || lent.type.bits == 0 || lent.type.bits % 8 != 0) {
      wrong_value(argument_, "has elements of " + std::to_string(lent.type.bits) + " bits in " +
                                 std::to_string(lent.type.lanes) + " lanes; " + kSupported);
    }
    array_.element_ = element_of_code(lent.type.code, lent.type.bits / 8);
    array_.shape_ = dims(lent.shape, lent.rank);
    array_.strides_ =
        lent.strides == nullptr ? Layout::contiguous(array_.shape_).strides : dims(lent.strides, lent.rank);
    array_.data_ = static_cast<std::byte*>(lent.data) + lent.byte_offset;
    check_aligned();
  }

  Dims dims(const std::int64_t* values, int rank) const {
    if (rank < 0 || rank > Dims::kMaxRank) {
      wrong_value(argument_,
                  "has " + std::to_string(rank) + " dimensions; rapt takes up to " + std::to_string(Dims::kMaxRank));
    }
    return Dims(std::span(values, static_cast<std::size_t>(rank)));
  }

  // From strides in bytes; null: row-major. The stride of a dimension of size 0 or 1 is never used and may be anything.
  void set_layout(void* data, const Py_ssize_t* shape, const Py_ssize_t* strides, int rank) {
    array_.data_ = data;
    array_.shape_ = dims(reinterpret_cast<const std::int64_t*>(shape), rank);
    array_.strides_ = Layout::contiguous(array_.shape_).strides;
    for (int dim = 0; strides != nullptr && dim < rank; ++dim) {
      const std::int64_t bytes = strides[dim];
      if (bytes % array_.element_.size != 0 && array_.shape_[dim] > 1) {
        wrong_value(argument_, "has a stride of " + std::to_string(bytes) +
                                   " bytes, which is not a multiple of the element size, " +
                                   std::to_string(array_.element_.size) + "; pass a copy: numpy.ascontiguousarray(" +
                                   argument_.name + ")");
      }
      array_.strides_[dim] = bytes / array_.element_.size;
    }
    check_aligned();
  }
  static_assert(sizeof(Py_ssize_t) == sizeof(std::int64_t));

  // This module reads integers itself, so their alignment is checked here; the library checks all other types.
  void check_aligned() const {
    const auto size = static_cast<std::uintptr_t>(array_.element_.size);
    if (!array_.element_.is_integer() || reinterpret_cast<std::uintptr_t>(array_.data_) % size == 0) return;
    wrong_value(argument_, "starts at an address that is not a multiple of the element size, " + std::to_string(size) +
                               " bytes; pass a copy of it");
  }

  void check_writable(bool writable) const {
    if (access_ == Access::write && !writable) {
      wrong_value(argument_, "is read-only; pass a writable array");
    }
  }

  [[noreturn]] void refuse_swapped() const {
    wrong_value(argument_, "has non-native byte order (" + type_name_of(object_) + " of swapped " +
                               array_.element_.name() + "); pass a copy in native byte order: " + argument_.name +
                               ".astype(" + argument_.name + ".dtype.newbyteorder('='))");
  }

  // Raises a ValueError with the producer's error as its cause.
  [[noreturn]] void refuse_loan() const {
    nb::python_error error;
    nb::raise_from(error, PyExc_ValueError, "%s: %s (%s) does not export its memory through DLPack", argument_.function,
                   argument_.name, type_name_of(object_).c_str());
  }

  Array& array_;
  nb::handle object_;
  const Argument& argument_;
  Access access_;
};

bool is_array(nb::handle object) {
  return library_of(object) != Library::other || has_dlpack(object) || PyObject_CheckBuffer(object.ptr()) != 0;
}

Array::Array(nb::handle object, const Argument& argument, Access access) : argument_(argument) {
  if (!object.is_none()) ArrayReader(*this, object, access).read();
}

DType Array::checked_dtype() const {
  const std::optional<DType> dtype = element_.dtype();
  if (!dtype) wrong_value(argument_, "holds " + element_.name() + "; " + kSupported);
  return *dtype;
}

ConstTensorView Array::view() const {
  return defined_ ? ConstTensorView(data_, checked_dtype(), shape_, strides_) : ConstTensorView();
}

TensorView Array::writable_view() const {
  return defined_ ? TensorView(data_, checked_dtype(), shape_, strides_) : TensorView();
}

}  // namespace rapt::python
