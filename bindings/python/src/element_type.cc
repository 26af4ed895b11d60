#include "element_type.h"

#include <bit>

namespace rapt::python {

std::optional<DType> ElementType::dtype() const {
  switch (kind) {
    case 'f':
      if (size == 4) return DType::f32;
      if (size == 8) return DType::f64;
      if (size == 2) return DType::f16;
      return std::nullopt;
    case 'B': return size == 2 ? std::optional(DType::bf16) : std::nullopt;
    case 'b': return size == 1 ? std::optional(DType::boolean) : std::nullopt;
    case 'i': return size == 1 ? std::optional(DType::i8) : std::nullopt;
    default: return std::nullopt;
  }
}

std::string ElementType::name() const {
  const std::string bits = std::to_string(8 * size);
  switch (kind) {
    case 'f': return "float" + bits;
    case 'B': return "bfloat" + bits;
    case 'b': return "bool";
    case 'i': return "int" + bits;
    case 'u': return "uint" + bits;
    case 'c': return "complex" + bits;
    default: return "elements of " + std::to_string(size) + " bytes";
  }
}

ElementType element_of_code(std::uint8_t code, int bytes) {
  constexpr std::string_view kKinds = "iufVBcb";  // by dlpack::TypeCode
  return {code < kKinds.size() ? kKinds[code] : 'V', bytes};
}

std::optional<FormatElement> element_of_format(std::string_view format, int bytes) {
  FormatElement element{{'V', bytes}};
  if (!format.empty() && std::string_view("@=<>!").find(format[0]) != std::string_view::npos) {
    const bool native = format[0] == '@' || format[0] == '=';
    const bool big = format[0] == '>' || format[0] == '!';
    element.swapped = !native && bytes > 1 && big != (std::endian::native == std::endian::big);
    format.remove_prefix(1);
  }
  if (format.size() != 1 || bytes < 1) return std::nullopt;
  const auto is_one_of = [&](std::string_view letters) { return letters.find(format[0]) != std::string_view::npos; };
  if (is_one_of("efd")) element.type.kind = 'f';
  if (is_one_of("?")) element.type.kind = 'b';
  if (is_one_of("bhilqn")) element.type.kind = 'i';
  if (is_one_of("BHILQN")) element.type.kind = 'u';
  return element.type.kind == 'V' ? std::nullopt : std::optional(element);
}

}  // namespace rapt::python
