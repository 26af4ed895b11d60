// Arrays that Python lends for a call, read and written where they lie.
//
//   const Array query(object, {"attention", "query"});
//   rapt::attention({.out = out}, query.view(), …);
//
// Which arrays: numpy.ndarray with any strides, bfloat16 of ml_dtypes included; whatever has __dlpack__ and lies in the
// computer's own memory, such as torch.Tensor and jax.Array; and whatever has the buffer protocol, such as memoryview
// and array.array. Nothing is copied.
//
// What is refused: an object that is no array, with a TypeError; an array that rapt cannot read, with a ValueError that
// says what would work. Both begin with the function's name, as the texts of rapt::Error do.
#pragma once

#include <cstdint>
#include <memory>

#include <nanobind/nanobind.h>

#include "element_type.h"
#include "errors.h"
#include "rapt/tensor.h"

namespace rapt::python {

namespace nb = nanobind;

enum class Access : std::uint8_t { read, write };

// An array on loan. It is given back when this object dies, which must happen with the interpreter's lock held; the
// memory may be used without the lock.
class Array {
 public:
  // The same as None: an undefined view.
  Array() = default;
  Array(nb::handle object, const Argument& argument, Access access = Access::read);

  bool defined() const { return defined_; }
  // Throws where the element type is none of rapt's.
  ConstTensorView view() const;
  TensorView writable_view() const;  // only for Access::write

  const ElementType& element() const { return element_; }
  const Dims& shape() const { return shape_; }
  const Dims& strides() const { return strides_; }  // in elements
  const void* data() const { return data_; }
  const Argument& argument() const { return argument_; }

 private:
  friend class ArrayReader;
  using Loan = std::unique_ptr<void, void (*)(void*)>;

  DType checked_dtype() const;

  void* data_ = nullptr;
  ElementType element_{};
  Dims shape_{};
  Dims strides_{};
  bool defined_ = false;
  Argument argument_{"", ""};
  Loan loan_{nullptr, nullptr};
};

// Does this object lend its memory in one of these ways?
bool is_array(nb::handle object);

}  // namespace rapt::python
