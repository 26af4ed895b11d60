// Errors about arguments: TypeError for a wrong type, ValueError for a wrong value. Messages start with the function's
// name, as those of rapt::Error do: "attention: softcap must be a number, not str".
#pragma once

#include <string>
#include <string_view>

#include <nanobind/nanobind.h>

namespace rapt::python {

namespace nb = nanobind;

// The function and the argument that an error message starts with.
struct Argument {
  const char* function;  // "attention"
  const char* name;      // "query"
};

[[noreturn]] void wrong_type(const Argument& argument, nb::handle object, std::string_view wanted);
[[noreturn]] void wrong_value(const Argument& argument, const std::string& text);

// "numpy.ndarray", "list".
std::string type_name_of(nb::handle object);

}  // namespace rapt::python
