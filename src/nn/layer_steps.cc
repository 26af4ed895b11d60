#include "nn/layer_steps.h"

#include <numeric>

#include "nn/added_keys.h"

namespace rapt::nn {

AttentionOptions& LayerSteps::attention_options() {
  const MultiHeadAttentionConfig& config = call_.config;
  AttentionOptions& options = memory_.attention;
  options = call_.options.attention;
  options.workspace = {};
  options.dropout.rate = call_.options.training ? config.dropout : 0.0;
  options.dropout.head_start += config.slice.index * call_.heads;
  if (config.context_length > 0) {
    options.causal = true;
    if (options.alignment.kind == Alignment::Kind::unnamed) options.alignment.kind = Alignment::Kind::top_left;
  }
  if (config.slice.count > 1) take_own_heads(options);
  if (call_.added_keys > 0) make_room_for_added_keys(call_, memory_.wide_masks, options, workers_);
  if (call_.options.cache != nullptr) {
    memory_.cached.apply(options);
    options.alignment.kind = Alignment::Kind::offset;
    options.alignment.values = memory_.starts;
  }
  return options;
}

// Per-head options are given for the whole layer; this selects those of the slice's heads.
void LayerSteps::take_own_heads(AttentionOptions& options) const {
  const std::int64_t first = call_.config.slice.index * call_.heads;
  for (Mask& mask : options.masks) {
    if (mask.view.rank() == 4 && mask.view.size(1) == call_.config.heads && call_.config.heads > 1) {
      mask.view = mask.view.slice(1, first, first + call_.heads);
    }
  }
  if (options.sinks.defined()) options.sinks = options.sinks.slice(0, first, first + call_.heads);
  if (options.alibi_slopes.empty()) return;
  options.alibi_slopes.erase(options.alibi_slopes.begin(), options.alibi_slopes.begin() + first);
  options.alibi_slopes.resize(static_cast<std::size_t>(call_.heads));
}

void LayerSteps::rotate(const Activations& activations, bool back) {
  const Checks checks("rotary");
  const Rotary::State& rotary = layer_.rotary->state();
  const PackedSequences& packed = call_.options.attention.packed;
  const TensorView q = split_heads(activations.q, call_.heads);
  rotary.rotate(checks, q, q, positions(packed.query_starts, q.size(2)), back, workers_);
  const TensorView k = split_heads(activations.given(activations.k), call_.kv_heads);
  rotary.rotate(checks, k, k, positions(packed.key_starts, k.size(2)), back, workers_);
}

RotaryPositions LayerSteps::positions(const std::vector<std::int64_t>& starts, std::int64_t length) {
  if (call_.options.cache != nullptr) return RotaryPositions::rows(memory_.starts);
  if (starts.empty()) return call_.options.position;
  std::vector<std::int64_t>& places = memory_.positions;  // each sequence starts at options.position
  places.resize(static_cast<std::size_t>(length));
  for (std::size_t n = 0; n + 1 < starts.size(); ++n) {
    std::iota(places.begin() + starts[n], places.begin() + starts[n + 1], call_.options.position);
  }
  return RotaryPositions::tokens(places);
}

}  // namespace rapt::nn
