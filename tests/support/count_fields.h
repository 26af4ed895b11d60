// How many fields a struct has, without a list of them: as many as a pair of braces takes.
#pragma once

#include <cstddef>
#include <optional>
#include <type_traits>

namespace rapt::testing {

// What can stand for a field. An optional takes whatever makes its content, so that one thing which is everything would
// be two ways to fill it, and none; these three overlap nowhere.
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

// Comes first: a struct inside the struct is then one field, where a scalar would go to the first field of that.
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
