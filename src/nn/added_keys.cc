#include "nn/added_keys.h"

#include <algorithm>

#include "core/elements.h"

namespace rapt::nn {

namespace {

// A mask with `added` columns before its own; 0 and false leave a score as it is, except that to keep is true.
Tensor widened(const Mask& mask, std::int64_t added) {
  Dims shape = mask.view.shape();
  const int last = shape.rank() - 1;
  const std::int64_t keys = shape[last];
  shape[last] += added;
  Tensor wide(shape, mask.view.dtype());
  copy(mask.view, wide.view().slice(last, added, added + keys));
  if (mask.kind == Mask::Kind::keep) {
    Tensor seen({1}, mask.view.dtype());
    store(seen.view().data(), seen.dtype(), 0, 1.0);
    Dims columns = shape;
    columns[last] = added;
    copy(seen.view().expand(columns), wide.view().slice(last, 0, added));
  }
  return wide;
}

// Calls visit(row) for each row, the last dimension, of any view.
template <class Visit>
void for_each_row(const TensorView& view, const Visit& visit) {
  if (view.rank() == 1) return visit(view);
  for (std::int64_t n = 0; n < view.size(0); ++n) for_each_row(view.select(0, n), visit);
}

}  // namespace

void write_added_keys(const MultiHeadAttentionConfig& config, const Parameters& parameters, const TensorView& k,
                      const TensorView& v) {
  const auto write = [&](const char* bias, const TensorView& to) {
    const Tensor zero({1, 1, to.size(2)}, to.dtype());
    const Dims one = {to.size(0), 1, to.size(2)};
    std::int64_t place = 0;
    if (config.add_bias_kv) copy(parameters[bias].expand(one), to.slice(1, place, place + 1)), ++place;
    if (config.add_zero_attention) copy(zero.view().expand(one), to.slice(1, place, place + 1));
  };
  write("bias_k", k);
  write("bias_v", v);
}

void make_room_for_added_keys(const LayerCall& call, std::vector<Tensor>& wide_masks, AttentionOptions& options) {
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
    case Alignment::Kind::bottom_right: break;  // both lengths are counted with the added keys
  }
  wide_masks.clear();
  wide_masks.reserve(options.masks.size());
  for (Mask& mask : options.masks) {
    const int last = mask.view.rank() - 1;
    if (last < 0 || mask.view.size(last) != call.key_length()) continue;  // of one column, or refused by attention
    wide_masks.push_back(widened(mask, added));
    mask.view = wide_masks.back().view();
  }
}

void put_added_keys_last(std::int64_t added, const TensorView& weights) {
  std::vector<double> first(static_cast<std::size_t>(added));
  for_each_row(weights, [&](const TensorView& row) {
    const auto move = [&](std::int64_t from, std::int64_t to) {
      store(row.data(), row.dtype(), to * row.stride(0), load(row.data(), row.dtype(), from * row.stride(0)));
    };
    for (std::int64_t n = 0; n < added; ++n) {
      first[static_cast<std::size_t>(n)] = load(row.data(), row.dtype(), n * row.stride(0));
    }
    const std::int64_t keys = row.size(0) - added;
    for (std::int64_t n = 0; n < keys; ++n) move(n + added, n);
    for (std::int64_t n = 0; n < added; ++n) {
      store(row.data(), row.dtype(), (keys + n) * row.stride(0), first[static_cast<std::size_t>(n)]);
    }
  });
}

void put_added_keys_first(std::int64_t added, const ConstTensorView& from, const TensorView& to) {
  const int last = from.rank() - 1;
  const std::int64_t keys = from.size(last) - added;
  copy(from.slice(last, keys, keys + added), to.slice(last, 0, added));
  copy(from.slice(last, 0, keys), to.slice(last, added, added + keys));
}

}  // namespace rapt::nn
