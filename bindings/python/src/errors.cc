#include "errors.h"

namespace rapt::python {

void wrong_type(const Argument& argument, nb::handle object, std::string_view wanted) {
  const std::string text = std::string(argument.function) + ": " + argument.name + " must be " + std::string(wanted) +
                           ", not " + type_name_of(object);
  throw nb::type_error(text.c_str());
}

void wrong_value(const Argument& argument, const std::string& text) {
  throw nb::value_error((std::string(argument.function) + ": " + argument.name + " " + text).c_str());
}

std::string type_name_of(nb::handle object) {
  const nb::handle type = object.type();
  const std::string module = nb::str(type.attr("__module__")).c_str();
  const std::string name = nb::str(type.attr("__qualname__")).c_str();
  return module == "builtins" ? name : module + "." + name;
}

}  // namespace rapt::python
