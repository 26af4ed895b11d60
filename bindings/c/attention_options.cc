#include "options.h"
#include "window.h"

namespace rapt::c {

namespace {

static_assert(same(Mask::Kind::keep, RAPT_MASK_KEEP) && same(Mask::Kind::drop, RAPT_MASK_DROP) &&
              same(Mask::Kind::add, RAPT_MASK_ADD) && same(Mask::Kind::fill, RAPT_MASK_FILL));
static_assert(same(Alignment::Kind::unnamed, RAPT_ALIGNMENT_UNNAMED) &&
              same(Alignment::Kind::top_left, RAPT_ALIGNMENT_TOP_LEFT) &&
              same(Alignment::Kind::bottom_right, RAPT_ALIGNMENT_BOTTOM_RIGHT) &&
              same(Alignment::Kind::offset, RAPT_ALIGNMENT_OFFSET));
static_assert(same(Engine::automatic, RAPT_ENGINE_AUTOMATIC) && same(Engine::reference, RAPT_ENGINE_REFERENCE) &&
              same(Engine::cpu, RAPT_ENGINE_CPU) && same(Engine::cuda, RAPT_ENGINE_CUDA));
static_assert(same(Stage::raw, RAPT_STAGE_RAW) && same(Stage::capped, RAPT_STAGE_CAPPED) &&
              same(Stage::masked, RAPT_STAGE_MASKED) && same(Stage::weights, RAPT_STAGE_WEIGHTS) &&
              same(Stage::dropped_weights, RAPT_STAGE_DROPPED_WEIGHTS));

std::vector<Mask> masks(const Caller& caller, const rapt_mask* first, std::size_t count) {
  const Structs<rapt_mask> all(caller, "options.masks", first, count);
  std::vector<Mask> result;
  result.reserve(count);
  for (std::size_t n = 0; n < count; ++n) {
    const rapt_mask mask = all[n];
    caller.require_zero(all.place(n, ""), mask.reserved);
    result.push_back({.kind = caller.choice(all.place(n, "kind"), mask.kind, Mask::Kind::fill),
                      .view = caller.view(all.place(n, "view"), mask.view),
                      .value = mask.value});
  }
  return result;
}

// The selection of heads and queries in a rapt_capture or a rapt_weights_gradient.
template <class Request>
Selection selection(const Caller& caller, const Structs<Request>& all, std::size_t n, const Request& request) {
  return {.mean_over_heads = request.of_mean_over_heads != 0,
          .heads = caller.copied(all.place(n, "of_heads"), request.of_heads, request.of_heads_count),
          .queries = caller.copied(all.place(n, "of_queries"), request.of_queries, request.of_queries_count)};
}

std::vector<WeightsGradient> weights_gradients(const Caller& caller, const rapt_weights_gradient* first,
                                               std::size_t count) {
  const Structs<rapt_weights_gradient> all(caller, "upstream.dweights", first, count);
  std::vector<WeightsGradient> result;
  result.reserve(count);
  for (std::size_t n = 0; n < count; ++n) {
    const rapt_weights_gradient gradient = all[n];
    result.push_back({.stage = caller.choice(all.place(n, "stage"), gradient.stage, Stage::dropped_weights),
                      .from = caller.view(all.place(n, "from"), gradient.from),
                      .of = selection(caller, all, n, gradient)});
  }
  return result;
}

}  // namespace

AttentionOptions attention_options(const Caller& caller, const rapt_attention_options* given) {
  const rapt_attention_options c = whole(caller, {"options"}, given);
  caller.require_zero({"options"}, c.reserved);
  const auto list = [&](const char* name, const auto* values, std::size_t count) {
    return caller.copied({name}, values, count);
  };
  AttentionOptions options;
  if (c.has_scale != 0) options.scale = c.scale;
  options.softcap = c.softcap;
  options.masks = masks(caller, c.masks, c.masks_count);
  options.causal = c.causal != 0;
  options.window = window_of(c);
  options.alignment = {caller.choice({"options.alignment_kind"}, c.alignment_kind, Alignment::Kind::offset),
                       list("options.alignment_values", c.alignment_values, c.alignment_values_count)};
  options.key_lengths = list("options.key_lengths", c.key_lengths, c.key_lengths_count);
  options.packed = {list("options.packed_query_starts", c.packed_query_starts, c.packed_query_starts_count),
                    list("options.packed_key_starts", c.packed_key_starts, c.packed_key_starts_count)};
  options.pages = {caller.list({"options.pages_table"}, c.pages_table, c.pages_table_count), c.pages_per_row,
                   c.pages_keys};
  options.key_scales = caller.view({"options.key_scales"}, c.key_scales);
  options.value_scales = caller.view({"options.value_scales"}, c.value_scales);
  options.alibi_slopes = list("options.alibi_slopes", c.alibi_slopes, c.alibi_slopes_count);
  options.sinks = caller.view({"options.sinks"}, c.sinks);
  options.dropout = {.rate = c.dropout_rate,
                     .seed = c.dropout_seed,
                     .batch_start = c.dropout_batch_start,
                     .head_start = c.dropout_head_start,
                     .query_start = c.dropout_query_start};
  options.engine = caller.choice({"options.engine"}, c.engine, Engine::cuda);
  options.threads = c.threads;
  options.parallel_for = parallel_for_of(c.parallel_for, c.parallel_for_context);
  options.workspace = caller.list({"options.workspace"}, static_cast<std::byte*>(c.workspace), c.workspace_bytes);
  return options;
}

std::vector<Capture> captures(const Caller& caller, const rapt_capture* first, std::size_t count) {
  const Structs<rapt_capture> all(caller, "outputs.captures", first, count);
  std::vector<Capture> result;
  result.reserve(count);
  for (std::size_t n = 0; n < count; ++n) {
    const rapt_capture capture = all[n];
    result.push_back({.stage = caller.choice(all.place(n, "stage"), capture.stage, Stage::dropped_weights),
                      .to = caller.view(all.place(n, "to"), capture.to),
                      .of = selection(caller, all, n, capture)});
  }
  return result;
}

AttentionOutputs attention_outputs(const Caller& caller, const rapt_attention_outputs* given) {
  const rapt_attention_outputs c = whole(caller, {"outputs"}, &caller.the("outputs", given));
  return {.out = caller.view({"outputs.out"}, c.out),
          .lse = caller.view({"outputs.lse"}, c.lse),
          .captures = captures(caller, c.captures, c.captures_count)};
}

AttentionUpstream attention_upstream(const Caller& caller, const rapt_attention_upstream* given) {
  const rapt_attention_upstream c = whole(caller, {"upstream"}, &caller.the("upstream", given));
  return {.dout = caller.view({"upstream.dout"}, c.dout),
          .dlse = caller.view({"upstream.dlse"}, c.dlse),
          .dweights = weights_gradients(caller, c.dweights, c.dweights_count),
          .out = caller.view({"upstream.out"}, c.out),
          .lse = caller.view({"upstream.lse"}, c.lse)};
}

std::vector<MaskGradient> mask_gradients(const Caller& caller, const rapt_mask_gradient* first, std::size_t count) {
  const Structs<rapt_mask_gradient> all(caller, "gradients.dmasks", first, count);
  std::vector<MaskGradient> result;
  result.reserve(count);
  for (std::size_t n = 0; n < count; ++n) {
    const rapt_mask_gradient gradient = all[n];
    result.push_back({gradient.mask, caller.view(all.place(n, "to"), gradient.to)});
  }
  return result;
}

AttentionGradients attention_gradients(const Caller& caller, const rapt_attention_gradients* given) {
  const rapt_attention_gradients c = whole(caller, {"gradients"}, &caller.the("gradients", given));
  return {.dquery = caller.view({"gradients.dquery"}, c.dquery),
          .dkey = caller.view({"gradients.dkey"}, c.dkey),
          .dvalue = caller.view({"gradients.dvalue"}, c.dvalue),
          .dsinks = caller.view({"gradients.dsinks"}, c.dsinks),
          .dmasks = mask_gradients(caller, c.dmasks, c.dmasks_count)};
}

}  // namespace rapt::c
