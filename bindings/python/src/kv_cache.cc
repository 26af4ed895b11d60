#include "kv_cache.h"

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include <nanobind/stl/optional.h>
#include <nanobind/stl/shared_ptr.h>

#include "arrays.h"
#include "dtypes.h"
#include "numbers.h"
#include "results.h"

namespace rapt::python {

namespace {

void append(SharedCache& self, nb::handle ids, nb::handle key, nb::handle value, nb::handle counts) {
  constexpr const char* kFunction = "KvCache.append";
  const std::vector<std::int64_t> sequences = integers(ids, {kFunction, "ids"});
  const std::vector<std::int64_t> tokens = integers(counts, {kFunction, "counts"});
  const Array keys(key, {kFunction, "key"});
  const Array values(value, {kFunction, "value"});
  const ConstTensorView key_view = keys.view();
  const ConstTensorView value_view = values.view();
  const nb::gil_scoped_release unlocked;
  const std::lock_guard lock(self.mutex);
  self.cache.append(sequences, key_view, value_view, tokens);
}

CacheLoan view(const std::shared_ptr<SharedCache>& self, nb::handle ids) {
  const std::vector<std::int64_t> sequences = integers(ids, {"KvCache.view", "ids"});
  CacheLoan loan{self, {}};
  const nb::gil_scoped_release unlocked;
  const std::lock_guard lock(self->mutex);
  self->cache.view(sequences, loan.view);
  return loan;
}

// Runs a step under the mutex. The GIL is released first: the holder of the mutex may be waiting for the GIL.
template <class Step>
auto locked(SharedCache& self, const Step& step) {
  const nb::gil_scoped_release unlocked;
  const std::lock_guard lock(self.mutex);
  return step(self.cache);
}

nb::object array_of(const CacheLoan& loan, const ConstTensorView& view) {
  return view.defined() ? as_array(Library::other, lend(loan.owner, view)) : nb::none();
}

nb::list list_of(const std::vector<std::int64_t>& values) {
  nb::list result;
  for (const std::int64_t value : values) result.append(value);
  return result;
}

nb::object page_table(const CacheLoan& loan) {
  const CacheView& seen = loan.view;
  if (seen.pages_per_row == 0) return nb::none();
  nb::list rows;
  for (std::size_t at = 0; at < seen.page_table.size(); at += static_cast<std::size_t>(seen.pages_per_row)) {
    nb::list row;
    for (std::size_t n = 0; n < static_cast<std::size_t>(seen.pages_per_row); ++n) row.append(seen.page_table[at + n]);
    rows.append(row);
  }
  return rows;
}

void bind_view(nb::module_& module) {
  nb::class_<CacheLoan>(module, "CacheView",
                        "A view of some sequences of a KvCache for attention: row b is the b-th of them.\n\n"
                        "Pass it as `rapt.attention(query, cache=view)`. The view is valid until the cache changes.")
      .def_prop_ro(
          "key", [](const CacheLoan& self) { return array_of(self, self.view.key); },
          "(B, Hkv, L, D), or pages (P, Hkv, page size, D); read-only, the cache's own memory.")
      .def_prop_ro(
          "value", [](const CacheLoan& self) { return array_of(self, self.view.value); },
          "(B, Hkv, L, Dv), or pages (P, Hkv, page size, Dv); read-only, the cache's own memory.")
      .def_prop_ro(
          "key_scales", [](const CacheLoan& self) { return array_of(self, self.view.key_scales); },
          "The scales of int8 keys, or None.")
      .def_prop_ro(
          "value_scales", [](const CacheLoan& self) { return array_of(self, self.view.value_scales); },
          "The scales of int8 values, or None.")
      .def_prop_ro(
          "key_lengths", [](const CacheLoan& self) { return list_of(self.view.key_lengths); },
          "How many tokens each sequence holds.")
      .def_prop_ro("page_table", &page_table, "The pages of each row, or None where the cache has no pages.")
      .def_prop_ro(
          "keys", [](const CacheLoan& self) { return self.view.keys; }, "Lk: the tokens of the longest sequence.");
}

}  // namespace

void bind_kv_cache(nb::module_& module) {
  bind_view(module);
  nb::class_<SharedCache>(
      module, "KvCache",
      "A KV cache: keys and values of growing sequences, appended token by token and read by attention in place.\n\n"
      "    cache = rapt.KvCache(kv_heads=8, head_size=128, sequences=4, page_size=64, pages=256)\n"
      "    ids = [cache.add(), cache.add()]\n"
      "    cache.append(ids, key, value)                       # (2, Hkv, L, D), (2, Hkv, L, Dv)\n"
      "    out = rapt.attention(query, cache=cache.view(ids), causal=True, alignment=\"bottom_right\")\n\n"
      "Without pages, each sequence has its own space for `length` tokens. With pages, all sequences share a pool "
      "of\npages: space is taken as tokens arrive, and a common prefix (fork) is stored once.\n\n"
      "kv_heads:    heads of keys and values\n"
      "head_size:   D\n"
      "value_size:  Dv; 0: head_size\n"
      "dtype:       \"float32\", \"bfloat16\", \"float16\", or \"int8\" with a scale for each token and head\n"
      "sequences:   maximum number of sequences\n"
      "length:      maximum tokens per sequence; with pages, 0 means as many as the pages hold\n"
      "page_size:   tokens per page, a power of two from 16; 0: no pages\n"
      "pages:       number of pages, shared by all sequences")
      .def(
          "__init__",
          [](SharedCache* self, std::int64_t kv_heads, std::int64_t head_size, std::int64_t value_size, nb::handle type,
             std::int64_t sequences, std::int64_t length, std::int64_t page_size, std::int64_t pages) {
            const DType stored = dtype(type, {"KvCache", "dtype"});
            const nb::gil_scoped_release unlocked;
            new (self) SharedCache({kv_heads, head_size, value_size, stored, sequences, length, page_size, pages});
          },
          nb::kw_only(), nb::arg("kv_heads") = 1, nb::arg("head_size"), nb::arg("value_size") = 0,
          nb::arg("dtype") = "float32", nb::arg("sequences") = 1, nb::arg("length") = 0, nb::arg("page_size") = 0,
          nb::arg("pages") = 0)
      .def(
          "add", [](SharedCache& self) { return locked(self, [](KvCache& cache) { return cache.add(); }); },
          "Adds an empty sequence and returns its id, the smallest free number.")
      .def(
          "remove", [](SharedCache& self, std::int64_t id) { locked(self, [&](KvCache& cache) { cache.remove(id); }); },
          nb::arg("id"), "Removes a sequence; its id and its space become free.")
      .def(
          "fork",
          [](SharedCache& self, std::int64_t id, std::optional<std::int64_t> length) {
            return locked(self, [&](KvCache& cache) { return length ? cache.fork(id, *length) : cache.fork(id); });
          },
          nb::arg("id"), nb::arg("length") = nb::none(),
          "A new sequence that starts with the first `length` tokens of another, or with all. With pages, these\n"
          "tokens are shared.")
      .def(
          "truncate",
          [](SharedCache& self, std::int64_t id, std::int64_t length) {
            locked(self, [&](KvCache& cache) { cache.truncate(id, length); });
          },
          nb::arg("id"), nb::arg("length"), "Truncates a sequence to its first `length` tokens.")
      .def("append", &append, nb::arg("ids"), nb::arg("key"), nb::arg("value"), nb::arg("counts") = nb::none(),
           "Appends tokens: key is (B, Hkv, L, D) and value (B, Hkv, L, Dv). Row b goes to sequence ids[b], all of it\n"
           "or its first counts[b] tokens. Numbers are rounded once, to the cache's type. A call that\nfails changes "
           "nothing.")
      .def("view", &view, nb::arg("ids"), "A view of these sequences, for attention(query, cache=…).")
      .def(
          "length",
          [](SharedCache& self, std::int64_t id) {
            return locked(self, [&](KvCache& cache) { return cache.length(id); });
          },
          nb::arg("id"), "Number of tokens in a sequence.")
      .def(
          "room",
          [](SharedCache& self, std::int64_t id) {
            return locked(self, [&](KvCache& cache) { return cache.room(id); });
          },
          nb::arg("id"), "Number of tokens that can still be appended to a sequence.")
      .def_prop_ro(
          "free_pages",
          [](SharedCache& self) { return locked(self, [](KvCache& cache) { return cache.free_pages(); }); },
          "Number of free pages.")
      .def_prop_ro(
          "sequence_count",
          [](SharedCache& self) { return locked(self, [](KvCache& cache) { return cache.sequence_count(); }); },
          "Number of sequences.")
      .def_prop_ro(
          "bytes", [](SharedCache& self) { return self.cache.bytes(); }, "Size of keys, values and scales in bytes.")
      .def_prop_ro("kv_heads", [](SharedCache& self) { return self.cache.config().kv_heads; })
      .def_prop_ro("head_size", [](SharedCache& self) { return self.cache.config().head_size; })
      .def_prop_ro("value_size", [](SharedCache& self) { return self.cache.config().value_size; })
      .def_prop_ro("dtype", [](SharedCache& self) { return python_name(self.cache.config().dtype); });
}

}  // namespace rapt::python
