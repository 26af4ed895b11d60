#include "nn/added_keys.h"

#include "core/engine.h"

namespace rapt::nn {

namespace {

// A mask with `added` columns in front that leave a score unchanged: 0 or false, or true for a keep mask.
Tensor widened(const Mask& mask, std::int64_t added, const Workers& workers) {
  Dims shape = mask.view.shape();
  const int last = shape.rank() - 1;
  const std::int64_t keys = shape[last];
  shape[last] += added;
  Tensor wide(shape, mask.view.dtype(), mask.view.device());
  const LayerOps& ops = *device_row(mask.view.device()).layer;
  ops.copy(mask.view, wide.view().slice(last, added, added + keys), workers);
  if (mask.kind == Mask::Kind::keep) ops.fill(wide.view().slice(last, 0, added), 1.0, workers);
  return wide;
}

}  // namespace

void write_added_keys(const MultiHeadAttentionConfig& config, const Parameters& parameters, const TensorView& k,
                      const TensorView& v, const Workers& workers) {
  const LayerOps& ops = *device_row(k.device()).layer;
  const auto write = [&](const char* bias, const TensorView& to) {
    const Dims one = {to.size(0), 1, to.size(2)};
    std::int64_t place = 0;
    if (config.add_bias_kv) ops.copy(parameters[bias].expand(one), to.slice(1, place, place + 1), workers), ++place;
    if (config.add_zero_attention) ops.fill(to.slice(1, place, place + 1), 0.0, workers);
  };
  write("bias_k", k);
  write("bias_v", v);
}

void make_room_for_added_keys(const LayerCall& call, std::vector<Tensor>& wide_masks, AttentionOptions& options,
                              const Workers& workers) {
  const std::int64_t added = call.added_keys;
  for (std::int64_t& length : options.key_lengths) length += added;
  switch (options.alignment.kind) {
    case Alignment::Kind::unnamed:
      if (call.query_length() != call.key_length()) break;  // attention requires an alignment if it matters
      [[fallthrough]];
    case Alignment::Kind::top_left: options.alignment = Alignment::offset(added); break;
    case Alignment::Kind::offset:
      for (std::int64_t& value : options.alignment.values) value += added;
      break;
    case Alignment::Kind::bottom_right: break;  // Lk and key_lengths include the added keys
  }
  wide_masks.clear();
  wide_masks.reserve(options.masks.size());
  for (Mask& mask : options.masks) {
    const int last = mask.view.rank() - 1;
    if (last < 0 || mask.view.size(last) != call.key_length()) continue;  // one column, or rejected by attention
    wide_masks.push_back(widened(mask, added, workers));
    mask.view = wide_masks.back().view();
  }
}

void put_added_keys_last(std::int64_t added, const TensorView& weights, const Workers& workers) {
  const LayerOps& ops = *device_row(weights.device()).layer;
  Tensor first(weights.shape(), weights.dtype(), weights.device());
  ops.copy(weights, first.view(), workers);
  const int last = weights.rank() - 1;
  const std::int64_t keys = weights.size(last) - added;
  ops.copy(first.view().slice(last, added, added + keys), weights.slice(last, 0, keys), workers);
  ops.copy(first.view().slice(last, 0, added), weights.slice(last, keys, keys + added), workers);
}

void put_added_keys_first(std::int64_t added, const ConstTensorView& from, const TensorView& to,
                          const Workers& workers) {
  const LayerOps& ops = *device_row(to.device()).layer;
  const int last = from.rank() - 1;
  const std::int64_t keys = from.size(last) - added;
  ops.copy(from.slice(last, keys, keys + added), to.slice(last, 0, added), workers);
  ops.copy(from.slice(last, 0, keys), to.slice(last, added, added + keys), workers);
}

}  // namespace rapt::nn
