// Converts C types to C++: tensors, lists, enums and structs that start with their size.
//
// Errors that are only possible in C are reported here, under the name of the C function: "rapt_attention:
// options.struct_size is 7; …". All others are left to the C++ library.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <vector>

#include "rapt/parallel.h"
#include "rapt/rapt.h"
#include "rapt/tensor.h"

namespace rapt::c {

// The path of a value in a call: `options`, `options.masks[2].kind`. It is formatted only for errors.
struct Place {
  const char* name;
  std::size_t index = kNone;
  const char* field = "";

  static constexpr std::size_t kNone = static_cast<std::size_t>(-1);
  std::string text() const;
};

// Converts the arguments of one C function, whose name starts every error message.
class Caller {
 public:
  explicit Caller(const char* function) : function_(function) {}

  [[noreturn]] void refuse(const std::string& why) const;
  void require(bool good, const char* why) const {
    if (!good) refuse(why);
  }

  template <class T>
  T& the(const char* name, T* pointer) const {
    if (pointer == nullptr) refuse_null(name);
    return *pointer;
  }

  // A null tensor gives an undefined view (defined() is false).
  TensorView view(const Place& place, const DLTensor* tensor) const;

  template <class T>
  std::span<T> list(const Place& place, T* values, std::size_t count) const {
    if (values == nullptr && count > 0) refuse_list(place, count);
    return {values, count};
  }
  template <class T>
  std::vector<T> copied(const Place& place, const T* values, std::size_t count) const {
    const std::span<const T> all = list(place, values, count);
    return {all.begin(), all.end()};
  }

  // An enumerator, 0 … last, which has the same value in C++.
  template <class Enum>
  Enum choice(const Place& place, std::int32_t value, Enum last) const {
    if (value < 0 || value > static_cast<std::int32_t>(last)) {
      refuse_choice(place, value, static_cast<std::int32_t>(last));
    }
    return static_cast<Enum>(value);
  }
  void require_index(std::size_t index, std::size_t count) const;
  void require_zero(const Place& place, std::int32_t reserved) const;

  // Requires a struct size that this library supports; `known` is the current size.
  void require_size(const Place& place, std::size_t size, std::size_t known) const;

 private:
  [[noreturn]] void refuse_null(const char* name) const;
  [[noreturn]] void refuse_list(const Place& place, std::size_t count) const;
  [[noreturn]] void refuse_choice(const Place& place, std::int32_t value, std::int32_t last) const;

  const char* function_;
};

// C and C++ enums have the same values, so that a conversion is a cast; static_assert(same(…)) checks an enumerator.
template <class Enum>
constexpr bool same(Enum cpp, int c) {
  return static_cast<int>(cpp) == c;
}

// The initial value of a struct is all zero except struct_size: null pointers, no flags and the first value of each
// enum. options.h lists the exceptions.
template <class Struct>
Struct defaults() {
  Struct result{};
  result.struct_size = sizeof(Struct);
  return result;
}

// A struct in this library's version: the caller's fields, and defaults for fields that an older caller's struct lacks.
// Null: all defaults.
template <class Struct>
Struct whole(const Caller& caller, const Place& place, const Struct* given) {
  Struct result = defaults<Struct>();
  if (given == nullptr) return result;
  caller.require_size(place, given->struct_size, sizeof(Struct));
  std::memcpy(&result, given, given->struct_size);
  return result;
}

// An array of structs in the caller's version, all of the size that the first one gives.
template <class Struct>
class Structs {
 public:
  Structs(const Caller& caller, const char* name, const Struct* first, std::size_t count)
      : caller_(caller), name_(name), count_(caller.list({name}, first, count).size()) {
    if (count == 0) return;
    bytes_ = reinterpret_cast<const std::byte*>(first);
    stride_ = first->struct_size;
    caller.require_size({name, 0}, stride_, sizeof(Struct));
  }

  std::size_t size() const { return count_; }
  Place place(std::size_t index, const char* field) const { return {name_, index, field}; }
  Struct operator[](std::size_t index) const {
    const auto* given = reinterpret_cast<const Struct*>(bytes_ + index * stride_);
    if (given->struct_size != stride_) {
      caller_.refuse(place(index, "struct_size").text() + " is " + std::to_string(given->struct_size) +
                     ", the first struct has " + std::to_string(stride_) +
                     "; all structs of an array must have the same size");
    }
    return whole(caller_, {name_, index}, given);
  }

 private:
  const Caller& caller_;
  const char* name_;
  std::size_t count_;
  const std::byte* bytes_ = nullptr;
  std::size_t stride_ = 0;
};

// Writes a struct for a caller that may have an older, shorter version of it.
template <class Struct>
void give(const Caller& caller, const char* name, Struct value, Struct* to) {
  const std::size_t size = caller.the(name, to).struct_size;
  caller.require_size({name}, size, sizeof(Struct));
  value.struct_size = size;
  std::memcpy(to, &value, size);
}

// A view as a DLTensor, whose shape and strides are stored in `memory`.
struct DimsMemory {
  std::array<std::int64_t, Dims::kMaxRank> shape{}, strides{};
};
DLTensor describe(const ConstTensorView& view, DimsMemory& memory);
// A DLTensor whose shape and strides are already stored elsewhere; null strides mean row-major.
DLTensor describe(const void* data, DType dtype, std::span<const std::int64_t> shape, std::int64_t* strides);

// Wraps a C thread pool for C++: an exception in a task does not cross C code, but is rethrown at the end.
ParallelFor parallel_for_of(rapt_parallel_for function, void* context);

}  // namespace rapt::c
