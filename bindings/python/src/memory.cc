#include "memory.h"

#include <array>
#include <cstddef>
#include <string>
#include <utility>

#include <nanobind/stl/string.h>

#include "dlpack.h"
#include "dtypes.h"

namespace rapt::python {

namespace {

dlpack::Type dlpack_type(DType dtype) {
  const auto bits = static_cast<std::uint8_t>(8 * size_of(dtype));
  switch (dtype) {
    case DType::f32:
    case DType::f64:
    case DType::f16: return {dlpack::kFloat, bits, 1};
    case DType::bf16: return {dlpack::kBfloat, bits, 1};
    case DType::boolean: return {dlpack::kBool, bits, 1};
    case DType::i8: return {dlpack::kInt, bits, 1};
  }
  return {dlpack::kOpaque, bits, 1};
}

// The buffer protocol's letter. It has none for bf16, whose bits are exported as 16-bit integers.
const char* buffer_format(DType dtype) {
  switch (dtype) {
    case DType::f32: return "f";
    case DType::f64: return "d";
    case DType::f16: return "e";
    case DType::bf16: return "H";
    case DType::boolean: return "?";
    case DType::i8: return "b";
  }
  return "B";
}

// The data of a DLPack export: the memory, its shape and strides.
template <class Managed>
struct Loan {
  Managed managed{};
  Memory memory;
  Dims shape, strides;
};

template <class Managed>
nb::object capsule_of(const Memory& memory) {
  auto loan = std::make_unique<Loan<Managed>>();
  loan->memory = memory;
  loan->shape = memory.view.shape();
  loan->strides = memory.view.strides();
  Managed& managed = loan->managed;
  managed.tensor = {.data = memory.view.data(),
                    .device = {dlpack::kCpu, 0},
                    .rank = memory.view.rank(),
                    .type = dlpack_type(memory.view.dtype()),
                    .shape = &loan->shape[0],
                    .strides = &loan->strides[0],
                    .byte_offset = 0};
  managed.context = loan.get();
  managed.deleter = [](Managed* self) { delete static_cast<Loan<Managed>*>(self->context); };
  if constexpr (requires { managed.flags; }) {
    managed.version = {1, 0};
    managed.flags = memory.read_only ? Managed::kReadOnly : 0;
  }
  PyObject* capsule = PyCapsule_New(&managed, Managed::kName, [](PyObject* unused) {
    auto* lent = static_cast<Managed*>(PyCapsule_GetPointer(unused, Managed::kName));
    if (lent == nullptr) {
      PyErr_Clear();  // consumed: its new owner deletes it
    } else {
      lent->deleter(lent);
    }
  });
  if (capsule == nullptr) nb::raise_python_error();
  loan.release();  // NOLINT(bugprone-unused-return-value): owned by the capsule now
  return nb::steal(capsule);
}

// `stream` and `dl_device` are required by the protocol.
nb::object to_dlpack(const Memory& memory, nb::handle /*stream*/, nb::handle max_version, nb::handle dl_device,
                     nb::handle copy) {
  if (!dl_device.is_none() && nb::cast<int>(dl_device[0]) != dlpack::kCpu) {
    throw nb::buffer_error("rapt.Array: is in host memory and cannot be exported to another device");
  }
  if (copy.is(Py_True))
    return to_dlpack(own(Tensor::copy_of(memory.view)), nb::none(), max_version, dl_device, nb::none());
  if (!max_version.is_none() && nb::cast<int>(max_version[0]) >= 1) {
    return capsule_of<dlpack::ManagedTensorVersioned>(memory);
  }
  if (memory.read_only) {
    throw nb::buffer_error("rapt.Array: is read-only, which DLPack cannot express before version 1; pass max_version");
  }
  return capsule_of<dlpack::ManagedTensor>(memory);
}

int get_buffer(PyObject* self, Py_buffer* to, int flags) {
  const Memory& memory = *nb::inst_ptr<Memory>(self);
  if ((flags & PyBUF_WRITABLE) != 0 && memory.read_only) {
    PyErr_SetString(PyExc_BufferError, "rapt.Array: is read-only");
    return -1;
  }
  const TensorView& view = memory.view;
  const bool strided = (flags & PyBUF_STRIDES) == PyBUF_STRIDES;
  if (!strided && !view.is_contiguous()) {
    PyErr_SetString(PyExc_BufferError, "rapt.Array: is not contiguous, and its strides were not requested");
    return -1;
  }
  const auto rank = static_cast<std::size_t>(view.rank());
  auto numbers = std::make_unique<std::array<Py_ssize_t, 2 * static_cast<std::size_t>(Dims::kMaxRank)>>();
  for (std::size_t dim = 0; dim < rank; ++dim) {
    (*numbers)[dim] = view.size(static_cast<int>(dim));
    (*numbers)[rank + dim] = view.stride(static_cast<int>(dim)) * static_cast<Py_ssize_t>(size_of(view.dtype()));
  }
  *to = {};
  to->buf = view.data();
  to->itemsize = static_cast<Py_ssize_t>(size_of(view.dtype()));
  to->len = view.count() * to->itemsize;
  to->readonly = memory.read_only ? 1 : 0;
  to->ndim = view.rank();
  to->format = (flags & PyBUF_FORMAT) != 0 ? const_cast<char*>(buffer_format(view.dtype())) : nullptr;
  to->shape = (flags & PyBUF_ND) != 0 ? numbers->data() : nullptr;
  to->strides = strided ? numbers->data() + rank : nullptr;
  to->internal = numbers.release();
  to->obj = self;
  Py_INCREF(self);
  return 0;
}

void release_buffer(PyObject* /*self*/, Py_buffer* lent) {
  delete static_cast<std::array<Py_ssize_t, 2 * static_cast<std::size_t>(Dims::kMaxRank)>*>(lent->internal);
}

std::string describe(const Memory& memory) {
  return "rapt.Array of " + std::string(python_name(memory.view.dtype())) + " with shape " +
         to_string(memory.view.shape());
}

}  // namespace

Memory own(Tensor tensor) {
  auto owner = std::make_shared<Tensor>(std::move(tensor));
  const TensorView view = owner->view();
  return {std::move(owner), view, false};
}

Memory lend(std::shared_ptr<const void> owner, const ConstTensorView& view, bool read_only) {
  // The const_cast is safe: memory that is lent as read-only refuses requests for write access.
  return {std::move(owner), TensorView(const_cast<void*>(view.data()), view.dtype(), view.shape(), view.strides()),
          read_only};
}

void bind_memory(nb::module_& module) {
  // NOLINTNEXTLINE: slots are a C array that ends with a zero
  static PyType_Slot slots[] = {{Py_bf_getbuffer, reinterpret_cast<void*>(get_buffer)},
                                {Py_bf_releasebuffer, reinterpret_cast<void*>(release_buffer)},
                                {0, nullptr}};
  nb::class_<Memory>(module, "Array", nb::type_slots(slots),
                     "Memory owned by rapt: the type of results and file contents when no array library is used.\n\n"
                     "It exports its memory through __dlpack__ and the buffer protocol: numpy.asarray, "
                     "torch.from_dlpack\nand rapt's own functions use it without a copy.")
      .def("__dlpack__", &to_dlpack, nb::kw_only(), nb::arg("stream") = nb::none(), nb::arg("max_version") = nb::none(),
           nb::arg("dl_device") = nb::none(), nb::arg("copy") = nb::none())
      .def("__dlpack_device__", [](const Memory&) { return nb::make_tuple(static_cast<int>(dlpack::kCpu), 0); })
      .def_prop_ro("shape",
                   [](const Memory& memory) {
                     nb::list sizes;
                     for (const std::int64_t size : memory.view.shape()) sizes.append(size);
                     return nb::tuple(sizes);
                   })
      .def_prop_ro("dtype", [](const Memory& memory) { return python_name(memory.view.dtype()); })
      .def("__repr__", &describe);
}

}  // namespace rapt::python
