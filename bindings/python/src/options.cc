#include "options.h"

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace rapt::python {

namespace {

void read_into(std::int64_t& field, nb::handle object, const Argument& argument) { field = integer(object, argument); }

void read_into(std::optional<std::int64_t>& field, nb::handle object, const Argument& argument) {
  if (!object.is_none()) field = integer(object, argument);
}

Window window(nb::handle object, const Argument& argument) {
  Window result;
  if (object.is_none()) return result;
  std::size_t fields = 2;
  if (nb::hasattr(object, "_fields")) {  // a rapt.Window; a bare tuple has only the two sides
    fields = 0;
    for_each_field(result, [&](std::string_view, const auto&) { ++fields; });
  }
  const nb::tuple given = tuple(object, argument, 2, fields, "a rapt.Window or (left, right), with None for no limit");
  std::size_t n = 0;
  for_each_field(result, [&](std::string_view, auto& field) {
    if (n < given.size()) read_into(field, given[n], argument);
    ++n;
  });
  return result;
}

// "top_left", "bottom_right", one offset for all, or one for each batch row.
Alignment alignment(nb::handle object, const Argument& argument) {
  if (object.is_none()) return {};
  if (PyUnicode_Check(object.ptr()) != 0) {
    constexpr std::array kWords = {"top_left", "bottom_right"};
    return word(object, argument, kWords) == 0 ? Alignment::top_left() : Alignment::bottom_right();
  }
  if (is_integer(object)) return Alignment::offset(integer(object, argument));
  return Alignment::offsets(integers(object, argument));
}

PackedSequences packed(nb::handle object, const Argument& argument) {
  if (object.is_none()) return {};
  const nb::tuple starts = tuple(object, argument, 2, 2, "a rapt.PackedSequences or (query_starts, key_starts)");
  return {integers(starts[0], argument), integers(starts[1], argument)};
}

Dropout dropout(nb::handle object, const Argument& argument) {
  if (object.is_none()) return {};
  const nb::tuple parts = tuple(object, argument, 2, 5, "a rapt.Dropout or (rate, seed)");
  const auto start = [&](std::size_t n) { return n < parts.size() ? integer(parts[n], argument) : 0; };
  return {number(parts[0], argument), seed(parts[1], argument), start(2), start(3), start(4)};
}

Engine engine(nb::handle object, const Argument& argument) {
  constexpr std::array kWords = {"automatic", "reference", "cpu"};
  return static_cast<Engine>(word(object, argument, kWords));
}

int thread_limit(nb::handle object, const Argument& argument) {
  const std::int64_t threads = integer(object, argument);
  if (threads != static_cast<int>(threads))
    wrong_value(argument, "is " + std::to_string(threads) + ", which is too many");
  return static_cast<int>(threads);
}

}  // namespace

CallOptions::CallOptions(const char* function, nb::handle given) : function_(function) {
  const auto at = [&](Option option) {
    return nb::handle(PyTuple_GetItem(given.ptr(), static_cast<Py_ssize_t>(option)));
  };
  if (PyTuple_Check(given.ptr()) == 0 || PyTuple_Size(given.ptr()) != static_cast<Py_ssize_t>(Option::count)) {
    throw nb::type_error("rapt: options must be a tuple of all options");
  }
  const auto argument = [&](const char* name) { return Argument{function, name}; };

  if (const nb::handle mask = at(Option::mask); !mask.is_none()) add_masks(mask);
  if (const nb::handle scale = at(Option::scale); !scale.is_none()) options_.scale = number(scale, argument("scale"));
  options_.softcap = number(at(Option::softcap), argument("softcap"));
  options_.causal = truth(at(Option::causal), argument("causal"));
  options_.window = window(at(Option::window), argument("window"));
  options_.alignment = alignment(at(Option::alignment), argument("alignment"));
  options_.key_lengths = integers(at(Option::key_lengths), argument("key_lengths"));
  options_.packed = packed(at(Option::packed), argument("packed"));
  if (const nb::handle pages = at(Option::pages); !pages.is_none()) {
    const nb::tuple parts = tuple(pages, argument("pages"), 1, 2, "a rapt.Pages or (table, keys)");
    page_table_ = IntegerTable(parts[0], argument("pages"));
    const std::int64_t keys = parts.size() > 1 ? integer(parts[1], argument("pages")) : 0;
    options_.pages = {page_table_.values(), page_table_.columns(), keys};
  }
  options_.key_scales = view(at(Option::key_scales), argument("key_scales"));
  options_.value_scales = view(at(Option::value_scales), argument("value_scales"));
  options_.alibi_slopes = numbers(at(Option::alibi_slopes), argument("alibi_slopes"));
  options_.sinks = view(at(Option::sinks), argument("sinks"));
  options_.dropout = dropout(at(Option::dropout), argument("dropout"));
  options_.engine = engine(at(Option::engine), argument("engine"));
  options_.threads = thread_limit(at(Option::threads), argument("threads"));
}

ConstTensorView CallOptions::view(nb::handle object, const Argument& argument) {
  if (object.is_none()) return {};
  return arrays_.emplace_back(object, argument).view();
}

void CallOptions::add_masks(nb::handle object) {
  // A rapt.Mask is a tuple as well, but its first item is a str.
  const bool tuple = PyTuple_Check(object.ptr()) != 0;
  const bool one = tuple && PyTuple_Size(object.ptr()) > 0 && PyUnicode_Check(PyTuple_GetItem(object.ptr(), 0)) != 0;
  if (!one && (tuple || PyList_Check(object.ptr()) != 0)) {
    for (const nb::object& mask : items(object)) add_mask(mask);
  } else {
    add_mask(object);
  }
}

void CallOptions::add_mask(nb::handle object) {
  const Argument argument{function_, "mask"};
  if (PyTuple_Check(object.ptr()) != 0) {
    const nb::tuple parts = tuple(object, argument, 3, 3, "a rapt.Mask");
    constexpr std::array kWords = {"keep", "drop", "add", "fill"};
    const auto kind = static_cast<Mask::Kind>(word(parts[0], argument, kWords));
    options_.masks.push_back({kind, view(parts[1], argument), number(parts[2], argument)});
    return;
  }
  const ConstTensorView bare = view(object, argument);
  if (bare.defined() && bare.dtype() == DType::boolean) {
    wrong_value(argument,
                "is a plain bool array, which does not say what True means; pass rapt.Mask.keep(mask) if True marks "
                "visible keys, as in torch's scaled_dot_product_attention, or rapt.Mask.drop(mask) if True marks "
                "masked keys, as in torch.nn.MultiheadAttention");
  }
  options_.masks.push_back(Mask::add(bare));
}

Stage stage(nb::handle object, const Argument& argument) {
  constexpr std::array kWords = {"raw", "capped", "masked", "weights", "dropped_weights"};
  return static_cast<Stage>(word(object, argument, kWords));
}

Selection selection(const char* function, nb::handle heads, nb::handle queries, nb::handle mean_over_heads) {
  const auto chosen = [&](nb::handle object, const Argument& argument) {
    std::vector<std::int64_t> list = integers(object, argument);
    if (list.empty() && !object.is_none()) wrong_value(argument, "is empty; None means all");
    return list;
  };
  return {.mean_over_heads = truth(mean_over_heads, {function, "mean_over_heads"}),
          .heads = chosen(heads, {function, "heads"}),
          .queries = chosen(queries, {function, "queries"})};
}

}  // namespace rapt::python
