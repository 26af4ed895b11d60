#include "dtypes.h"

#include <array>
#include <cstddef>
#include <string>
#include <string_view>

#include "numbers.h"

namespace rapt::python {

namespace {

constexpr std::array<const char*, 6> kNames = {"float32", "float64", "bfloat16",
                                               "float16", "bool",    "int8"};  // by DType

// numpy.dtype has a name, a class such as numpy.float32 has a __name__, and torch.float32 is printed with its module.
nb::object name_of(nb::handle object) {
  for (const char* attribute : {"name", "__name__"}) {
    nb::object name = nb::getattr(object, attribute, nb::none());
    if (PyUnicode_Check(name.ptr()) != 0) return name;
  }
  const nb::str text(object);
  const std::string_view whole = text.c_str();
  constexpr std::string_view kTorch = "torch.";
  if (!whole.starts_with(kTorch)) return nb::none();
  const std::string_view rest = whole.substr(kTorch.size());
  return nb::str(rest.data(), rest.size());
}

}  // namespace

const char* python_name(DType dtype) { return kNames[static_cast<std::size_t>(dtype)]; }

DType dtype(nb::handle object, const Argument& argument) {
  const nb::object name = PyUnicode_Check(object.ptr()) != 0 ? nb::borrow(object) : name_of(object);
  if (name.is_none()) wrong_type(argument, object, "the name of a type, such as 'float32'");
  return static_cast<DType>(word(name, argument, kNames));
}

}  // namespace rapt::python
