#include "layer/arguments.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <mutex>
#include <utility>

#include "numbers.h"

namespace rapt::python {

namespace {

// The indices in the tuple.
enum class Place : std::size_t {
  query,
  key,
  value,
  attn_mask,
  key_padding_mask,
  options,
  weights,
  training,
  position,
  cache,
  sequences,
  count,
};

nb::handle at(nb::handle arguments, Place place) {
  return PyTuple_GetItem(arguments.ptr(), static_cast<Py_ssize_t>(place));
}

nb::handle checked(nb::handle arguments) {
  if (PyTuple_Check(arguments.ptr()) == 0 || PyTuple_Size(arguments.ptr()) != static_cast<Py_ssize_t>(Place::count)) {
    throw nb::type_error("rapt: arguments must be a tuple of all arguments");
  }
  return arguments;
}

SharedCache* shared_cache(nb::handle object) {
  if (!nb::isinstance<SharedCache>(object)) wrong_type({kForward, "cache"}, object, "a rapt.KvCache");
  return &nb::cast<SharedCache&>(object);
}

}  // namespace

LayerArguments::LayerArguments(const MultiHeadAttentionConfig& config, nb::handle arguments)
    : config_(config), attention_(kForward, at(checked(arguments), Place::options)) {
  query_ = lent(at(arguments, Place::query), "query");
  key_ = lent(at(arguments, Place::key), "key");
  value_ = lent(at(arguments, Place::value), "value");
  options_.attention = std::move(attention_.get());

  const ConstTensorView mask = lent(at(arguments, Place::attn_mask), "attn_mask");
  if (mask.defined()) add_mask(mask.rank() == 3 ? mask_of_heads(mask, config.heads) : mask);
  const ConstTensorView padding = lent(at(arguments, Place::key_padding_mask), "key_padding_mask");
  if (padding.defined()) add_mask(mask_of_keys(padding.rank() == 1 ? padding.unsqueeze(0) : padding));

  constexpr std::array kWeights = {"none", "mean", "per_head"};  // by ReturnWeights
  options_.weights = static_cast<ReturnWeights>(word(at(arguments, Place::weights), {kForward, "weights"}, kWeights));
  options_.training = truth(at(arguments, Place::training), {kForward, "training"});
  options_.position = integer(at(arguments, Place::position), {kForward, "position"});
  sequences_ = integers(at(arguments, Place::sequences), {kForward, "sequences"});
  options_.sequences = sequences_;
  if (const nb::handle cache = at(arguments, Place::cache); !cache.is_none()) {
    cache_ = shared_cache(cache);
    options_.cache = &cache_->cache;
  }
}

ConstTensorView LayerArguments::lent(nb::handle object, const char* name) {
  if (object.is_none()) return {};
  return arrays_.emplace_back(object, Argument{kForward, name}).view();
}

void LayerArguments::add_mask(const ConstTensorView& view) {
  options_.attention.masks.push_back(view.dtype() == DType::boolean ? Mask::drop(view) : Mask::add(view));
}

bool LayerArguments::sizes(Sizes& to) const {
  const int rank = query_.rank();
  const ConstTensorView& key = key_.defined() ? key_ : query_;
  if ((rank != 2 && rank != 3) || key.rank() != rank) return false;
  const int batch = config_.batch_first ? 0 : 1;
  to.batched = rank == 3;
  to.batch = to.batched ? query_.size(batch) : 1;
  to.queries = query_.size(to.batched ? 1 - batch : 0);
  to.keys = key.size(to.batched ? 1 - batch : 0);
  if (cache_ != nullptr) {
    // Without the GIL: the holder of the mutex may be waiting for the GIL.
    const nb::gil_scoped_release unlocked;
    const std::scoped_lock held(cache_->mutex);
    std::int64_t longest = 0;
    for (std::int64_t b = 0; b < to.batch; ++b) {
      const auto row = static_cast<std::size_t>(b);
      const std::vector<std::int64_t>& lengths = options_.attention.key_lengths;
      const std::int64_t added = row < lengths.size() ? lengths[row] : to.queries;
      const std::int64_t sequence = row < sequences_.size() ? sequences_[row] : b;
      longest = std::max(longest, cache_->cache.length(sequence) + added);
    }
    to.keys = longest;
  }
  to.keys += (config_.add_bias_kv ? 1 : 0) + (config_.add_zero_attention ? 1 : 0);
  return true;
}

}  // namespace rapt::python
