// How a wrong argument is refused: TypeError for what is of a wrong type, ValueError for what has a wrong value. Texts
// begin with the function's name, as those of rapt::Error do: "attention: softcap must be a number, not str".
#pragma once

#include <string>
#include <string_view>

#include <nanobind/nanobind.h>

namespace rapt::python {

namespace nb = nanobind;

// Whose call, and which argument of it: what an error text begins with.
struct Argument {
  const char* function;  // "attention"
  const char* name;      // "query"
};

[[noreturn]] void wrong_type(const Argument& argument, nb::handle object, std::string_view wanted);
[[noreturn]] void wrong_value(const Argument& argument, const std::string& text);

// "numpy.ndarray", "list".
std::string type_name_of(nb::handle object);

}  // namespace rapt::python
