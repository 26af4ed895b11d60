#include "numbers.h"

#include <limits>
#include <string>
#include <string_view>

namespace rapt::python {

namespace {

bool is_list(nb::handle object) { return PyList_Check(object.ptr()) != 0 || PyTuple_Check(object.ptr()) != 0; }

// An element of an array of integers, whatever their size.
std::int64_t integer_at(const Array& array, std::int64_t place) {
  const ElementType& element = array.element();
  const auto at = [&]<class T>(T) { return static_cast<std::int64_t>(static_cast<const T*>(array.data())[place]); };
  switch (element.kind == 'u' ? -element.size : element.size) {
    case 1: return at(std::int8_t{});
    case 2: return at(std::int16_t{});
    case 4: return at(std::int32_t{});
    case 8: return at(std::int64_t{});
    case -1: return at(std::uint8_t{});
    case -2: return at(std::uint16_t{});
    case -4: return at(std::uint32_t{});
    default: return at(std::uint64_t{});
  }
}

Array integer_array(nb::handle object, const Argument& argument, int rank) {
  Array array(object, argument);
  if (!array.element().is_integer()) {
    wrong_value(argument, "holds " + array.element().name() + "; it must hold integers");
  }
  if (array.shape().rank() != rank) {
    wrong_value(argument,
                "has " + std::to_string(array.shape().rank()) + " dimensions; it must have " + std::to_string(rank));
  }
  return array;
}

std::int32_t as_32_bits(std::int64_t value, const Argument& argument) {
  if (value != static_cast<std::int32_t>(value)) {
    wrong_value(argument, "holds " + std::to_string(value) + ", which is not a 32-bit integer");
  }
  return static_cast<std::int32_t>(value);
}

}  // namespace

double number(nb::handle object, const Argument& argument) {
  const double value = PyFloat_AsDouble(object.ptr());
  if (value == -1.0 && PyErr_Occurred() != nullptr) {
    PyErr_Clear();
    wrong_type(argument, object, "a number");
  }
  return value;
}

bool is_integer(nb::handle object) {
  if (PyLong_Check(object.ptr()) != 0) return true;
  if (PyIndex_Check(object.ptr()) == 0) return false;
  const nb::object index = nb::steal(PyNumber_Index(object.ptr()));  // arrays have __index__ too; most raise an error
  if (!index.is_valid()) PyErr_Clear();
  return index.is_valid();
}

std::int64_t integer(nb::handle object, const Argument& argument) {
  const nb::object index = nb::steal(PyNumber_Index(object.ptr()));
  if (!index.is_valid()) {
    PyErr_Clear();
    wrong_type(argument, object, "an integer");
  }
  const std::int64_t value = PyLong_AsLongLong(index.ptr());
  if (value == -1 && PyErr_Occurred() != nullptr) {
    PyErr_Clear();
    wrong_value(argument, "is " + std::string(nb::str(index).c_str()) + ", which is not a 64-bit integer");
  }
  return value;
}

std::uint64_t seed(nb::handle object, const Argument& argument) {
  const nb::object index = nb::steal(PyNumber_Index(object.ptr()));
  if (!index.is_valid()) {
    PyErr_Clear();
    wrong_type(argument, object, "an integer");
  }
  const std::uint64_t value = PyLong_AsUnsignedLongLong(index.ptr());
  if (value == std::numeric_limits<std::uint64_t>::max() && PyErr_Occurred() != nullptr) {
    PyErr_Clear();
    wrong_value(argument, "has the seed " + std::string(nb::str(index).c_str()) + "; it must be 0 to 2**64 - 1");
  }
  return value;
}

bool truth(nb::handle object, const Argument& argument) {
  if (object.is(Py_True)) return true;
  if (object.is(Py_False)) return false;
  const std::string type = type_name_of(object);
  if (type != "numpy.bool" && type != "numpy.bool_") wrong_type(argument, object, "a bool");
  return PyObject_IsTrue(object.ptr()) == 1;
}

std::size_t word(nb::handle object, const Argument& argument, std::span<const char* const> words) {
  if (PyUnicode_Check(object.ptr()) == 0) wrong_type(argument, object, "a str");
  Py_ssize_t size = 0;
  const char* bytes = PyUnicode_AsUTF8AndSize(object.ptr(), &size);
  if (bytes == nullptr) nb::raise_python_error();
  const std::string_view given(bytes, static_cast<std::size_t>(size));
  std::string choices;
  for (std::size_t n = 0; n < words.size(); ++n) {
    if (given == words[n]) return n;
    choices += n == 0 ? "" : n + 1 == words.size() ? " or " : ", ";
    choices.append("'").append(words[n]).append("'");
  }
  wrong_value(argument, "is '" + std::string(given) + "'; it may be " + choices);
}

std::vector<nb::object> items(nb::handle object) {
  std::vector<nb::object> result;
  for (const nb::handle item : object) result.push_back(nb::borrow(item));
  return result;
}

std::vector<std::int64_t> integers(nb::handle object, const Argument& argument) {
  std::vector<std::int64_t> values;
  if (object.is_none()) return values;
  if (is_list(object)) {
    for (const nb::handle item : object) values.push_back(integer(item, argument));
    return values;
  }
  if (!is_array(object)) wrong_type(argument, object, "a list or an array of integers");
  const Array array = integer_array(object, argument, 1);
  for (std::int64_t n = 0; n < array.shape()[0]; ++n) values.push_back(integer_at(array, n * array.strides()[0]));
  return values;
}

std::vector<double> numbers(nb::handle object, const Argument& argument) {
  std::vector<double> values;
  if (object.is_none()) return values;
  if (is_list(object)) {
    for (const nb::handle item : object) values.push_back(number(item, argument));
    return values;
  }
  if (!is_array(object)) wrong_type(argument, object, "a list or an array of numbers");
  const Array array(object, argument);
  const ConstTensorView view = array.view();
  if (view.rank() != 1) {
    wrong_value(argument, "has " + std::to_string(view.rank()) + " dimensions; it must have 1");
  }
  const Tensor wide = Tensor::copy_of(view, DType::f64);
  values.assign(wide.values<double>().begin(), wide.values<double>().end());
  return values;
}

nb::tuple tuple(nb::handle object, const Argument& argument, std::size_t least, std::size_t most, const char* form) {
  if (PyTuple_Check(object.ptr()) == 0) wrong_type(argument, object, form);
  nb::tuple result = nb::borrow<nb::tuple>(object);
  if (result.size() < least || result.size() > most) {
    wrong_value(argument, "is a tuple of length " + std::to_string(result.size()) + "; it must be " + form);
  }
  return result;
}

IntegerTable::IntegerTable(nb::handle object, const Argument& argument) {
  if (is_list(object)) {
    copy_rows(object, argument);
  } else {
    loan_ = integer_array(object, argument, 2);
    const std::int64_t rows = loan_.shape()[0];
    columns_ = loan_.shape()[1];
    const ElementType& element = loan_.element();
    if (element.kind == 'i' && element.size == 4 && Layout{loan_.shape(), loan_.strides()}.is_contiguous()) {
      values_ = {static_cast<const std::int32_t*>(loan_.data()), static_cast<std::size_t>(rows * columns_)};
      return;
    }
    for (std::int64_t row = 0; row < rows; ++row) {
      for (std::int64_t column = 0; column < columns_; ++column) {
        const std::int64_t place = row * loan_.strides()[0] + column * loan_.strides()[1];
        copy_.push_back(as_32_bits(integer_at(loan_, place), argument));
      }
    }
  }
  values_ = copy_;
}

void IntegerTable::copy_rows(nb::handle object, const Argument& argument) {
  bool first = true;
  for (const nb::handle row : object) {
    const std::vector<std::int64_t> values = integers(row, argument);
    const auto width = static_cast<std::int64_t>(values.size());
    if (first) columns_ = width;
    if (width != columns_) {
      wrong_value(argument, "has rows of " + std::to_string(columns_) + " and of " + std::to_string(width) +
                                " numbers; they must have the same length");
    }
    for (const std::int64_t value : values) copy_.push_back(as_32_bits(value, argument));
    first = false;
  }
}

}  // namespace rapt::python
