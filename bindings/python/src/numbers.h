// Numbers, words and lists of them, as Python gives them. Other types raise a TypeError that names the argument:
// "attention: softcap must be a number, not str".
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <nanobind/nanobind.h>

#include "arrays.h"

namespace rapt::python {

double number(nb::handle object, const Argument& argument);
bool is_integer(nb::handle object);  // Python's or NumPy's
std::int64_t integer(nb::handle object, const Argument& argument);
std::uint64_t seed(nb::handle object, const Argument& argument);
bool truth(nb::handle object, const Argument& argument);

// The index of a word in a list: "engine is 'gpu'; it may be 'automatic', 'reference' or 'cpu'".
std::size_t word(nb::handle object, const Argument& argument, std::span<const char* const> words);

// The numbers of a list, a tuple or an array with one dimension. None is an empty list.
std::vector<std::int64_t> integers(nb::handle object, const Argument& argument);
std::vector<double> numbers(nb::handle object, const Argument& argument);

// A tuple, named or not, of `least` to `most` items; `form` describes it in errors: "a rapt.Window or (left, right)".
nb::tuple tuple(nb::handle object, const Argument& argument, std::size_t least, std::size_t most, const char* form);

// A list or a tuple as a list of its items.
std::vector<nb::object> items(nb::handle object);

// Rows of 32-bit integers. A contiguous array is read in place; anything else is copied.
class IntegerTable {
 public:
  IntegerTable() = default;
  IntegerTable(nb::handle object, const Argument& argument);

  std::span<const std::int32_t> values() const { return values_; }
  std::int64_t columns() const { return columns_; }

 private:
  void copy_rows(nb::handle object, const Argument& argument);

  Array loan_;
  std::vector<std::int32_t> copy_;
  std::span<const std::int32_t> values_{};
  std::int64_t columns_ = 0;
};

}  // namespace rapt::python
