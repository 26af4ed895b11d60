// The options of a call of attention, converted from the tuple that the Python functions build from their keywords.
#pragma once

#include <cstddef>
#include <deque>

#include <nanobind/nanobind.h>

#include "arrays.h"
#include "numbers.h"
#include "rapt/attention.h"

namespace rapt::python {

// The indices in the tuple, in the order of Options in rapt/_options.py.
enum class Option : std::size_t {
  mask,
  scale,
  softcap,
  causal,
  window,
  alignment,
  key_lengths,
  packed,
  pages,
  key_scales,
  value_scales,
  alibi_slopes,
  sinks,
  dropout,
  engine,
  threads,
  count,
};

// Options and the arrays they borrow: must live until the call returns.
class CallOptions {
 public:
  CallOptions(const char* function, nb::handle tuple);
  CallOptions(const CallOptions&) = delete;
  CallOptions& operator=(const CallOptions&) = delete;

  AttentionOptions& get() { return options_; }
  const AttentionOptions& get() const { return options_; }

 private:
  void add_masks(nb::handle object);
  void add_mask(nb::handle object);
  ConstTensorView view(nb::handle object, const Argument& argument);

  const char* function_;
  AttentionOptions options_;
  std::deque<Array> arrays_;
  IntegerTable page_table_;
};

// Where a capture or a gradient of weights is taken: "raw", "capped", "masked", "weights", "dropped_weights".
Stage stage(nb::handle object, const Argument& argument);
Selection selection(const char* function, nb::handle heads, nb::handle queries, nb::handle mean_over_heads);

}  // namespace rapt::python
