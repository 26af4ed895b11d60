// The element type of an array, from the descriptions of several protocols.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "rapt/dtype.h"

namespace rapt::python {

// In the letters of NumPy's type codes: f float, b bool, i and u integers, c complex; and B for bfloat16. All others
// are unsupported.
struct ElementType {
  char kind = 'f';
  int size = 4;  // bytes

  bool is_integer() const { return kind == 'i' || kind == 'u'; }
  std::optional<DType> dtype() const;  // none if rapt has no such type
  std::string name() const;            // "float32", "int64"
};

// By a code of DLPack.
ElementType element_of_code(std::uint8_t code, int bytes);

// From a format string of the buffer protocol, as in Python's struct module. None if it is not a single number.
struct FormatElement {
  ElementType type;
  bool swapped = false;  // non-native byte order
};
std::optional<FormatElement> element_of_format(std::string_view format, int bytes);

}  // namespace rapt::python
