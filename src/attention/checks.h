// Checks shared by the tensors of a call, and their error messages.
#pragma once

#include <array>
#include <cstddef>
#include <initializer_list>
#include <ostream>
#include <string>
#include <string_view>

#include "core/text.h"

namespace rapt {

// The name of an argument, or of a list element: masks[2].
class Name {
 public:
  Name() = default;
  // Implicit, so that a string can be passed as a name.
  // NOLINTNEXTLINE(google-explicit-constructor)
  Name(const char* plain) : size_(std::string_view(plain).copy(text_.data(), text_.size())) {}
  Name(std::string_view list, std::size_t place, std::string_view rest = {});

  // NOLINTNEXTLINE(google-explicit-constructor)
  operator std::string_view() const { return {text_.data(), size_}; }
  friend std::ostream& operator<<(std::ostream& out, const Name& name) { return out << std::string_view(name); }

 private:
  std::array<char, 48> text_{};
  std::size_t size_ = 0;
};

// Messages start with the name of the function that was called, so that a user can find the call.
class Checks {
 public:
  // All tensors that are checked must be on `device`.
  explicit Checks(std::string_view function, Device device = {}) : function_(function), device_(device) {}

  template <class... Pieces>
  [[noreturn]] void fail(const Pieces&... pieces) const {
    throw Error(text(function_, ": ", pieces...));
  }
  template <class... Pieces>
  void require(bool good, const Pieces&... pieces) const {
    if (!good) fail(pieces...);
  }

  // Requires a tensor to be defined, on the device of the call and aligned to its element size and, unless it is empty,
  // to have memory.
  void usable(std::string_view name, const ConstTensorView& tensor) const;
  // Requires a usable tensor of exactly this shape; `meaning` is the notation of the shape: "(B, Hq, Lq, Dv)".
  void shaped(std::string_view name, const ConstTensorView& tensor, const Dims& shape, std::string_view meaning) const;
  void typed(std::string_view name, const ConstTensorView& tensor, std::initializer_list<DType> allowed) const;
  // No two elements of a tensor that will be written may share an address.
  void writable(std::string_view name, const ConstTensorView& tensor) const;

 private:
  void check_device(std::string_view name, const ConstTensorView& tensor) const;

  std::string_view function_;
  Device device_;
};

}  // namespace rapt
