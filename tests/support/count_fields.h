// Counts the fields of a struct: the maximum number of initializers that it accepts in braces.
#pragma once

#include <cstddef>
#include <optional>
#include <type_traits>

namespace rapt::testing {

// Placeholders for a field. A single type that converts to everything would be ambiguous for an optional, which can
// also be initialized from its content; these three types do not overlap.
struct AnyScalar {
  template <class T>
  requires std::is_scalar_v<T>
  operator T() const;  // NOLINT(google-explicit-constructor)
};

template <class T>
inline constexpr bool kIsOptional = false;
template <class T>
inline constexpr bool kIsOptional<std::optional<T>> = true;

struct AnyOptional {
  template <class T>
  requires kIsOptional<T>
  operator T() const;  // NOLINT(google-explicit-constructor)
};

// Tried first: a nested struct then counts as one field, whereas a scalar would initialize its first field.
struct AnyObject {
  template <class T>
  requires(std::is_class_v<T> && !kIsOptional<T>) operator T() const;  // NOLINT(google-explicit-constructor)
};

template <class Struct, class... Fields>
constexpr std::size_t count_fields() {
  static_assert(std::is_aggregate_v<Struct>);
  static_assert(sizeof...(Fields) < 64, "never ends");
  if constexpr (requires { Struct{Fields{}..., AnyObject{}}; }) {
    return count_fields<Struct, Fields..., AnyObject>();
  } else if constexpr (requires { Struct{Fields{}..., AnyOptional{}}; }) {
    return count_fields<Struct, Fields..., AnyOptional>();
  } else if constexpr (requires { Struct{Fields{}..., AnyScalar{}}; }) {
    return count_fields<Struct, Fields..., AnyScalar>();
  } else {
    return sizeof...(Fields);
  }
}

}  // namespace rapt::testing
