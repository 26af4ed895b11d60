// The outputs of a layer's forward: the caller's arrays, or new ones of the query's array type.
#pragma once

#include <cstdint>
#include <vector>

#include <nanobind/nanobind.h>

#include "arrays.h"
#include "layer/arguments.h"
#include "outputs.h"
#include "rapt/multi_head_attention.h"

namespace rapt::python {

class LayerOutputArrays {
 public:
  LayerOutputArrays(Library library, const MultiHeadAttentionConfig& config, const LayerArguments& arguments);

  void add_out(nb::handle given);  // None: a new array
  void add_weights(ReturnWeights which);
  void add_lse();
  void add_capture(nb::handle object);  // a rapt.Capture: (stage, heads, queries, mean_over_heads, dtype, out)

  nb::tuple pair();  // (out, weights)
  nb::tuple all();   // (out, weights, lse, captures)

  LayerOutputs to;

 private:
  std::int64_t heads() const { return config_.heads / config_.slice.count; }
  DType score_type() const { return config_.dtype == DType::f64 ? DType::f64 : DType::f32; }
  Dims plane(bool mean, std::int64_t heads, std::int64_t queries) const;

  Library library_;
  const MultiHeadAttentionConfig& config_;
  LayerArguments::Sizes sizes_;
  bool known_;  // whether sizes_ are valid; otherwise forward rejects the query
  DType query_type_;
  Output out_, weights_, lse_;
  std::vector<Output> captures_;
};

}  // namespace rapt::python
