// rapt.attention: borrows arrays, calls without the GIL, and returns results of the query's array type.
#include "attention.h"

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "arrays.h"
#include "dtypes.h"
#include "kv_cache.h"
#include "numbers.h"
#include "options.h"
#include "outputs.h"
#include "rapt/attention.h"

namespace rapt::python {

namespace {

constexpr const char* kFunction = "attention";

// Lk of weights and scores. A negative pages.keys counts as 0 here: the call rejects it later.
std::int64_t key_count(const ConstTensorView& key, const Pages& pages) {
  if (pages.per_row == 0) return key.size(2);
  return pages.keys != 0 ? std::max<std::int64_t>(pages.keys, 0) : pages.per_row * key.size(2);
}

std::int64_t count_of(const std::vector<std::int64_t>& chosen, std::int64_t all) {
  return chosen.empty() ? all : static_cast<std::int64_t>(chosen.size());
}

// Inputs, outputs and options of one call. If a tensor has a wrong rank, outputs are empty, and the call rejects it.
class Call {
 public:
  Call(nb::handle query, nb::handle key, nb::handle value, nb::handle cache, nb::handle options)
      : library_(library_of(query)), query_(query, {kFunction, "query"}), options_(kFunction, options) {
    if (!query_.defined()) throw nb::type_error("attention: query is None; it must be an array");
    query_view_ = query_.view();
    if (cache.is_none()) {
      if (key.is_none() || value.is_none()) {
        throw nb::type_error("attention: key or value is None; give both, or cache=");
      }
      key_ = Array(key, {kFunction, "key"});
      value_ = Array(value, {kFunction, "value"});
      key_view_ = key_.view();
      value_view_ = value_.view();
    } else {
      if (!key.is_none() || !value.is_none()) {
        throw nb::type_error("attention: cache provides keys and values; omit key and value");
      }
      apply_cache(cache);
    }
    ranks_ = query_view_.rank() == 4 && key_view_.rank() == 4 && value_view_.rank() == 4;
  }

  void add_out(nb::handle given) {
    const Dims shape =
        ranks_ ? Dims{query_view_.size(0), query_view_.size(1), query_view_.size(2), value_view_.size(3)} : Dims{0};
    out_ = output(given, "out", shape, query_view_.dtype());
    outputs_.out = out_.view();
  }

  void add_lse() {
    const Dims shape = ranks_ ? Dims{query_view_.size(0), query_view_.size(1), query_view_.size(2)} : Dims{0};
    lse_ = Output(library_, shape, query_view_.dtype() == DType::f64 ? DType::f64 : DType::f32);
    outputs_.lse = lse_.view();
  }

  // A rapt.Capture: (stage, heads, queries, mean_over_heads, dtype, out).
  void add_capture(nb::handle object) {
    const nb::tuple parts = tuple(object, {kFunction, "captures"}, 6, 6, "a rapt.Capture");
    Capture capture{.stage = stage(parts[0], {kFunction, "stage"}),
                    .of = selection(kFunction, parts[1], parts[2], parts[3])};
    const std::int64_t batch = ranks_ ? query_view_.size(0) : 0;
    const std::int64_t heads = ranks_ ? count_of(capture.of.heads, query_view_.size(1)) : 0;
    const std::int64_t queries = ranks_ ? count_of(capture.of.queries, query_view_.size(2)) : 0;
    const std::int64_t keys = ranks_ ? key_count(key_view_, options_.get().pages) : 0;
    const Dims shape = capture.of.mean_over_heads ? Dims{batch, queries, keys} : Dims{batch, heads, queries, keys};
    const DType type = parts[4].is_none() ? query_view_.dtype() : dtype(parts[4], {kFunction, "dtype"});
    captures_.push_back(output(parts[5], "captures", shape, type));
    capture.to = captures_.back().view();
    outputs_.captures.push_back(std::move(capture));
  }

  void run() {
    const nb::gil_scoped_release unlocked;
    rapt::attention(outputs_, query_view_, key_view_, value_view_, options_.get());
  }

  nb::object out() { return out_.finish(); }
  nb::object lse() { return lse_.finish(); }
  nb::list captures() {
    nb::list result;
    for (Output& capture : captures_) result.append(capture.finish());
    return result;
  }

 private:
  void apply_cache(nb::handle cache) {
    if (!nb::isinstance<CacheLoan>(cache)) wrong_type({kFunction, "cache"}, cache, "the result of KvCache.view");
    const CacheView& seen = nb::cast<CacheLoan&>(cache).view;
    AttentionOptions& options = options_.get();
    const bool given = !options.key_lengths.empty() || options.pages.per_row != 0 || options.key_scales.defined() ||
                       options.value_scales.defined();
    if (given) {
      wrong_value({kFunction, "cache"}, "provides key_lengths, pages, key_scales and value_scales; omit them");
    }
    seen.apply(options);
    key_view_ = seen.key;
    value_view_ = seen.value;
  }

  Output output(nb::handle given, const char* name, const Dims& shape, DType dtype) const {
    return given.is_none() ? Output(library_, shape, dtype) : Output(given, {kFunction, name});
  }

  Library library_;
  Array query_, key_, value_;
  CallOptions options_;
  ConstTensorView query_view_, key_view_, value_view_;
  bool ranks_ = false;
  Output out_, lse_;
  std::vector<Output> captures_;
  AttentionOutputs outputs_;
};

// The output as an array, or (out, lse, captures) if more than the output was requested.
nb::object attention_call(nb::handle query, nb::handle key, nb::handle value, nb::handle cache, nb::handle options,
                          nb::handle out, bool want_lse, nb::handle captures) {
  Call call(query, key, value, cache, options);
  call.add_out(out);
  if (want_lse) call.add_lse();
  if (!captures.is_none()) {
    for (const nb::object& capture : items(captures)) call.add_capture(capture);
  }
  call.run();
  if (!want_lse && captures.is_none()) return call.out();
  return nb::make_tuple(call.out(), call.lse(), call.captures());
}

}  // namespace

void bind_attention(nb::module_& module) {
  module.def("attention", &attention_call, nb::arg("query").none(), nb::arg("key").none(), nb::arg("value").none(),
             nb::arg("cache").none(), nb::arg("options"), nb::arg("out").none(), nb::arg("want_lse"),
             nb::arg("captures").none());
}

}  // namespace rapt::python
