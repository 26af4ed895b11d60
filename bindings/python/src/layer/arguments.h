// The arguments of a layer's forward, which backward reads again.
#pragma once

#include <cstdint>
#include <deque>
#include <vector>

#include <nanobind/nanobind.h>

#include "arrays.h"
#include "kv_cache.h"
#include "options.h"
#include "rapt/multi_head_attention.h"

namespace rapt::python {

inline constexpr const char* kForward = "MultiheadAttention.forward";  // as in the library's own messages

// The arguments from Python, in the order of the tuple that rapt/_layer.py makes: (query, key, value, attn_mask,
// key_padding_mask, options, weights, training, position, cache, sequences)
class LayerArguments {
 public:
  LayerArguments(const MultiHeadAttentionConfig& config, nb::handle arguments);
  LayerArguments(const LayerArguments&) = delete;
  LayerArguments& operator=(const LayerArguments&) = delete;

  const ConstTensorView& query() const { return query_; }
  const ConstTensorView& key() const { return key_; }      // undefined: the query
  const ConstTensorView& value() const { return value_; }  // undefined: the key
  LayerOptions& options() { return options_; }
  SharedCache* cache() const { return cache_; }

  // B, Lq and Lk; Lk counts the cached and the added keys. False if the shape of the query is invalid: forward rejects
  // it.
  struct Sizes {
    std::int64_t batch = 0, queries = 0, keys = 0;
    bool batched = true;
  };
  bool sizes(Sizes& to) const;

 private:
  ConstTensorView lent(nb::handle object, const char* name);
  // PyTorch's convention: bool with True for hidden, or a float type that is added.
  void add_mask(const ConstTensorView& view);

  const MultiHeadAttentionConfig& config_;
  std::deque<Array> arrays_;
  CallOptions attention_;
  ConstTensorView query_, key_, value_;
  std::vector<std::int64_t> sequences_;
  SharedCache* cache_ = nullptr;
  LayerOptions options_;
};

}  // namespace rapt::python
