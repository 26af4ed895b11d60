// The fields of a window: each in C++ and in C, for conversions in both directions.
#pragma once

#include <cstdint>
#include <optional>

#include "rapt/attention.h"
#include "rapt/rapt.h"

namespace rapt::c {

// Calls visit(window.field, c.window_field), or visit(window.field, c.has_window_field, c.window_field) for a field
// that may be unset.
template <class AnyWindow, class Options, class Visit>
void for_each_field(AnyWindow& window, Options& c, const Visit& visit) {
  visit(window.left, c.has_window_left, c.window_left);
  visit(window.right, c.has_window_right, c.window_right);
  visit(window.first, c.window_first);
}

inline Window window_of(const rapt_attention_options& c) {
  struct FromC {
    void operator()(std::optional<std::int64_t>& field, std::int32_t has, std::int64_t value) const {
      if (has != 0) field = value;
    }
    void operator()(std::int64_t& field, std::int64_t value) const { field = value; }
  };
  Window window;
  for_each_field(window, c, FromC());
  return window;
}

inline void set_window(rapt_attention_options& c, const Window& window) {
  struct ToC {
    void operator()(const std::optional<std::int64_t>& field, std::int32_t& has, std::int64_t& value) const {
      has = field ? 1 : 0, value = field.value_or(0);
    }
    void operator()(std::int64_t field, std::int64_t& value) const { value = field; }
  };
  for_each_field(window, c, ToC());
}

}  // namespace rapt::c
