#include "array.h"

#include <cmath>
#include <cstddef>
#include <optional>
#include <span>

#include <emscripten/bind.h>

#include "errors.h"

namespace rapt::wasm {

namespace {

// A temporary view: it becomes invalid when the memory grows.
template <class Number>
val window(Number* numbers, std::int64_t count) {
  return val(emscripten::typed_memory_view(static_cast<std::size_t>(count), numbers));
}

std::string kind_of(const val& object) { return object["constructor"]["name"].as<std::string>(); }

DType dtype_for(const val& numbers, const std::string& dtype) {
  const std::string kind = kind_of(numbers);
  if (kind == "Float32Array") return DType::f32;
  if (kind == "Float64Array") return DType::f64;
  if (kind == "Uint8Array") return DType::boolean;
  if (kind == "Uint16Array" && (dtype == "bf16" || dtype == "f16")) return dtype_named(dtype);
  throw Error("tensor: " + kind +
              " is not one of Float32Array, Float64Array, Uint8Array for bools, and Uint16Array with "
              "a dtype of bf16 or f16");
}

void fill(Tensor& tensor, const val& numbers) {
  const std::int64_t count = tensor.count();
  void* memory = tensor.view().data();
  switch (tensor.dtype()) {
    case DType::f32: window(static_cast<float*>(memory), count).call<void>("set", numbers); break;
    case DType::f64: window(static_cast<double*>(memory), count).call<void>("set", numbers); break;
    case DType::boolean: {
      auto* bytes = static_cast<std::uint8_t*>(memory);
      window(bytes, count).call<void>("set", numbers);
      for (std::int64_t n = 0; n < count; ++n) bytes[n] = bytes[n] != 0 ? 1 : 0;
      break;
    }
    default: window(static_cast<std::uint16_t*>(memory), count).call<void>("set", numbers); break;
  }
}

val list_of(const Dims& dims) {
  val list = val::array();
  for (int dim = 0; dim < dims.rank(); ++dim) list.set(dim, static_cast<double>(dims[dim]));
  return list;
}

}  // namespace

val named_list(const std::vector<NamedTensor>& tensors, const std::shared_ptr<const void>& owner) {
  val list = val::array();
  for (const NamedTensor& each : tensors) {
    val named = val::object();
    named.set("name", each.name);
    named.set("tensor", Array(each.value, owner));
    push(list, named);
  }
  return list;
}

bool is_given(const val& value) { return !value.isUndefined() && !value.isNull(); }

namespace {

// `value` as an integer, if it is one that a double represents exactly.
std::optional<std::int64_t> integer(const val& value) {
  const double number = value.isNumber() ? value.as<double>() : std::nan("");
  if (!(std::abs(number) <= 9007199254740992.0 && number == std::floor(number))) return std::nullopt;
  return static_cast<std::int64_t>(number);
}

}  // namespace

std::int64_t whole_number(const val& value, const char* name) {
  const std::optional<std::int64_t> number = integer(value);
  if (!number) throw Error(std::string(name) + " must be an integer");
  return *number;
}

std::vector<std::int64_t> whole_numbers(const val& list, const char* name) {
  if (!is_given(list) || !list["length"].isNumber()) throw Error(std::string(name) + " must be a list of integers");
  std::vector<std::int64_t> numbers;
  const auto length = list["length"].as<unsigned>();
  for (unsigned n = 0; n < length; ++n) {
    const std::optional<std::int64_t> number = integer(list[n]);
    if (!number) throw Error(std::string(name) + " must be a list of integers");
    numbers.push_back(*number);
  }
  return numbers;
}

Dims dims_of(const val& list, const char* name) {
  return Dims(std::span<const std::int64_t>(whole_numbers(list, name)));
}

DType dtype_named(const std::string& name) {
  for (const DType dtype : {DType::f32, DType::f64, DType::bf16, DType::f16, DType::boolean, DType::i8}) {
    if (name == name_of(dtype)) return dtype;
  }
  throw Error("unknown dtype \"" + name + "\"");
}

const Array& array_of(const val& value, const char* name) {
  if (!is_given(value) || !value.instanceof (val::module_property("Tensor"))) {
    throw Error(std::string(name) + " must be a tensor");
  }
  return *value.as<const Array*>(emscripten::allow_raw_pointers());
}

Array::Array(Tensor tensor) {
  auto owner = std::make_shared<Tensor>(std::move(tensor));
  view_ = std::as_const(*owner).view();
  owner_ = std::move(owner);
}

Array Array::of(const val& numbers, const val& shape, const std::string& dtype) {
  Tensor tensor(dims_of(shape, "shape"), dtype_for(numbers, dtype));
  const auto given = static_cast<std::int64_t>(numbers["length"].as<double>());
  if (given != tensor.count()) {
    throw Error("tensor: shape " + to_string(tensor.shape()) + " has " + std::to_string(tensor.count()) + " numbers, " +
                std::to_string(given) + " were given");
  }
  fill(tensor, numbers);
  return Array(std::move(tensor));
}

val Array::shape() const { return list_of(view_.shape()); }
val Array::strides() const { return list_of(view_.strides()); }

val Array::values() const {
  const bool as_they_are = view_.dtype() == DType::f64 || view_.dtype() == DType::boolean;
  const Tensor copy = Tensor::copy_of(view_, as_they_are ? view_.dtype() : DType::f32);
  const void* memory = copy.view().data();
  const std::int64_t count = copy.count();
  const val numbers = copy.dtype() == DType::f64       ? window(static_cast<const double*>(memory), count)
                      : copy.dtype() == DType::boolean ? window(static_cast<const std::uint8_t*>(memory), count)
                                                       : window(static_cast<const float*>(memory), count);
  return numbers.call<val>("slice");
}

Array Array::transpose(int a, int b) const { return {view_.transpose(a, b), owner_}; }
Array Array::slice(int dim, int begin, int end) const { return {view_.slice(dim, begin, end), owner_}; }
Array Array::select(int dim, int index) const { return {view_.select(dim, index), owner_}; }
Array Array::split_heads(int heads) const { return {rapt::split_heads(view_, heads), owner_}; }

Array Array::reshape(const val& shape) const {
  const Dims dims = dims_of(shape, "shape");
  if (view_.is_contiguous()) return {view_.reshape(dims), owner_};
  const Array copy(Tensor::copy_of(view_));
  return {copy.view_.reshape(dims), copy.owner_};
}

Array Array::combine_heads() const { return Array(combine_heads_copy(view_)); }

namespace {

// Calls a method of Array; its exceptions become JavaScript errors.
template <auto method, class... Arguments>
auto safely(const Array& array, Arguments... arguments) {
  return guarded([&] { return (array.*method)(arguments...); });
}

Array make(const val& numbers, const val& shape, const std::string& dtype) {
  return guarded([&] { return Array::of(numbers, shape, dtype); });
}

}  // namespace

EMSCRIPTEN_BINDINGS(rapt_array) {
  emscripten::class_<Array>("Tensor")
      .class_function("of", &make)
      .property("dtype", &Array::dtype)
      .property("shape", &Array::shape)
      .property("strides", &Array::strides)
      .function("values", &safely<&Array::values>)
      .function("transpose", &safely<&Array::transpose, int, int>)
      .function("slice", &safely<&Array::slice, int, int, int>)
      .function("select", &safely<&Array::select, int, int>)
      .function("reshape", &safely<&Array::reshape, const val&>)
      .function("splitHeads", &safely<&Array::split_heads, int>)
      .function("combineHeads", &safely<&Array::combine_heads>);
}

}  // namespace rapt::wasm
