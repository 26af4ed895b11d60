// Arrays borrowed from Python for a call, read and written in place.
//
//   const Array query(object, {"attention", "query"});
//   rapt::attention({.out = out}, query.view(), …);
//
// Supported: numpy.ndarray with any strides, including bfloat16 of ml_dtypes; objects with __dlpack__ in host memory,
// such as torch.Tensor and jax.Array; and objects with the buffer protocol, such as memoryview and array.array. Nothing
// is copied.
//
// Errors: TypeError for an object that is not an array; ValueError for an array that rapt cannot read, with what would
// work. Both messages start with the function's name, as those of rapt::Error do.
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

// A borrowed array. It is released when this object is destroyed, which must happen with the GIL held; the memory may
// be used without the GIL.
class Array {
 public:
  // The same as None: an undefined view.
  Array() = default;
  Array(nb::handle object, const Argument& argument, Access access = Access::read);

  bool defined() const { return defined_; }
  // Throws if rapt does not support the element type.
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

// Whether the object supports one of these protocols.
bool is_array(nb::handle object);

}  // namespace rapt::python
