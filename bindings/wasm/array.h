// A tensor for JavaScript: data in the engine's memory, and its owner.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <emscripten/val.h>

#include "rapt/named_tensor.h"
#include "rapt/tensor.h"

namespace rapt::wasm {

using emscripten::val;

class Array {
 public:
  explicit Array(Tensor tensor);
  // A view of memory that `owner` keeps alive.
  Array(const ConstTensorView& view, std::shared_ptr<const void> owner) : owner_(std::move(owner)), view_(view) {}

  // From a Float32Array, Float64Array, Uint8Array (of bools), or Uint16Array of the bits of `dtype`, "bf16" or "f16".
  static Array of(const val& numbers, const val& shape, const std::string& dtype);

  const ConstTensorView& view() const { return view_; }
  std::string dtype() const { return std::string(name_of(view_.dtype())); }
  val shape() const;
  val strides() const;
  // All numbers in row-major order, in a new typed array: a Float64Array for f64, a Uint8Array for bool, else a
  // Float32Array.
  val values() const;

  // Views of the same memory.
  Array transpose(int a, int b) const;
  Array slice(int dim, int begin, int end) const;
  Array select(int dim, int index) const;
  Array reshape(const val& shape) const;  // copies if the strides do not allow a view
  Array split_heads(int heads) const;
  Array combine_heads() const;  // always copies

 private:
  std::shared_ptr<const void> owner_;
  ConstTensorView view_;
};

// Appends to a list. (A call of its push would release the argument when it returns.)
template <class Value>
void push(val& list, const Value& value) {
  list.set(list["length"], value);
}

// A list [{name, tensor}] of parameters that `owner` keeps alive.
val named_list(const std::vector<NamedTensor>& tensors, const std::shared_ptr<const void>& owner);

// Checked conversions from JavaScript; errors name the argument `name`.
std::int64_t whole_number(const val& value, const char* name);
std::vector<std::int64_t> whole_numbers(const val& list, const char* name);
Dims dims_of(const val& list, const char* name);
DType dtype_named(const std::string& name);
bool is_given(const val& value);  // neither undefined nor null
const Array& array_of(const val& value, const char* name);

}  // namespace rapt::wasm
