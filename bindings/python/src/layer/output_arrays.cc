#include "layer/output_arrays.h"

#include <utility>

#include "dtypes.h"
#include "numbers.h"
#include "options.h"

namespace rapt::python {

LayerOutputArrays::LayerOutputArrays(Library library, const MultiHeadAttentionConfig& config,
                                     const LayerArguments& arguments)
    : library_(library), config_(config), known_(arguments.sizes(sizes_)), query_type_(arguments.query().dtype()) {}

void LayerOutputArrays::add_out(nb::handle given) {
  const auto [batch, queries, keys, batched] = sizes_;
  const std::int64_t size = config_.output_size;
  const Dims shape = !known_               ? Dims{0}
                     : !batched            ? Dims{queries, size}
                     : config_.batch_first ? Dims{batch, queries, size}
                                           : Dims{queries, batch, size};
  out_ = given.is_none() ? Output(library_, shape, query_type_) : Output(given, {kForward, "out"});
  to.out = out_.view();
}

void LayerOutputArrays::add_weights(ReturnWeights which) {
  if (which == ReturnWeights::none) return;
  weights_ = Output(library_, plane(which == ReturnWeights::mean, heads(), sizes_.queries), score_type());
  to.weights = weights_.view();
}

void LayerOutputArrays::add_lse() {
  const Dims shape = sizes_.batched ? Dims{sizes_.batch, heads(), sizes_.queries} : Dims{heads(), sizes_.queries};
  lse_ = Output(library_, shape, score_type());
  to.lse = lse_.view();
}

void LayerOutputArrays::add_capture(nb::handle object) {
  const nb::tuple parts = tuple(object, {kForward, "captures"}, 6, 6, "a rapt.Capture");
  Capture capture{
      .stage = stage(parts[0], {kForward, "stage"}), .to = {}, .of = selection(kForward, parts[1], parts[2], parts[3])};
  const std::int64_t chosen = capture.of.heads.empty() ? heads() : std::ssize(capture.of.heads);
  const std::int64_t queries = capture.of.queries.empty() ? sizes_.queries : std::ssize(capture.of.queries);
  const DType type = parts[4].is_none() ? score_type() : dtype(parts[4], {kForward, "dtype"});
  captures_.push_back(parts[5].is_none() ? Output(library_, plane(capture.of.mean_over_heads, chosen, queries), type)
                                         : Output(parts[5], {kForward, "captures"}));
  capture.to = captures_.back().view();
  to.captures.push_back(std::move(capture));
}

Dims LayerOutputArrays::plane(bool mean, std::int64_t heads, std::int64_t queries) const {
  if (!sizes_.batched) return mean ? Dims{queries, sizes_.keys} : Dims{heads, queries, sizes_.keys};
  return mean ? Dims{sizes_.batch, queries, sizes_.keys} : Dims{sizes_.batch, heads, queries, sizes_.keys};
}

nb::tuple LayerOutputArrays::pair() { return nb::make_tuple(out_.finish(), weights_.finish()); }

nb::tuple LayerOutputArrays::all() {
  nb::list captures;
  for (Output& capture : captures_) captures.append(capture.finish());
  return nb::make_tuple(out_.finish(), weights_.finish(), lse_.finish(), nb::tuple(captures));
}

}  // namespace rapt::python
