#include "nn/layer_call.h"

#include <algorithm>
#include <cstddef>

#include "attention/apart.h"
#include "core/call_counts.h"

namespace rapt::nn {

namespace {

void check_rate(const Checks& checks, const char* name, double rate) {
  checks.require(rate >= 0.0 && rate <= 1.0, name, " is ", rate, "; it must be between 0 and 1");
}

bool is_same(const ConstTensorView& a, const ConstTensorView& b) {
  return a.data() == b.data() && a.dtype() == b.dtype() && a.shape() == b.shape() && a.strides() == b.strides();
}

void check_input(const Checks& checks, const MultiHeadAttentionConfig& config, const char* name,
                 const ConstTensorView& x, std::int64_t size, const char* size_name) {
  checks.usable(name, x);
  checks.require(x.rank() == 2 || x.rank() == 3, name, " has shape ", x.shape(), "; it must be ",
                 config.batch_first ? "(B, L, E)" : "(L, B, E)", ", or (L, E) without a batch");
  checks.require(x.size(x.rank() - 1) == size, name, " has tokens of ", x.size(x.rank() - 1),
                 " numbers, the layer has ", size_name, " = ", size, "; they must be equal");
  if (config.dtype == DType::f64) {
    checks.require(x.dtype() == DType::f64, name, " is ", x.dtype(), ", the layer's parameters are f64; f64 does not ",
                   "mix with other types");
  } else {
    checks.typed(name, x, {DType::f32, DType::bf16, DType::f16});
  }
}

}  // namespace

ConstTensorView canonical(const ConstTensorView& x, bool batch_first) {
  if (x.rank() == 2) return x.unsqueeze(0);
  return batch_first ? x : x.transpose(0, 1);
}
TensorView canonical(const TensorView& x, bool batch_first) {
  if (x.rank() == 2) return x.unsqueeze(0);
  return batch_first ? x : x.transpose(0, 1);
}

MultiHeadAttentionConfig checked_config(const MultiHeadAttentionConfig& given) {
  const Checks checks("MultiHeadAttention");
  MultiHeadAttentionConfig config = given;
  checks.require(config.embed_size > 0, "embed_size is ", config.embed_size, "; it must be positive");
  checks.require(config.heads > 0, "heads is ", config.heads, "; it must be positive");
  for (const auto& [name, size] :
       {std::pair("kv_heads", config.kv_heads), std::pair("head_size", config.head_size),
        std::pair("key_size", config.key_size), std::pair("value_size", config.value_size),
        std::pair("output_size", config.output_size), std::pair("context_length", config.context_length)}) {
    checks.require(size >= 0, name, " is ", size, "; it must be positive, or 0 for its default");
  }
  if (config.head_size == 0) {
    checks.require(config.embed_size % config.heads == 0, "embed_size ", config.embed_size,
                   " is not a multiple of heads ", config.heads,
                   "; give head_size, or a number of heads that divides embed_size");
    config.head_size = config.embed_size / config.heads;
  }
  if (config.kv_heads == 0) config.kv_heads = config.heads;
  checks.require(config.heads % config.kv_heads == 0, "heads ", config.heads, " is not a multiple of kv_heads ",
                 config.kv_heads, "; each kv head must serve the same number of query heads");
  const auto fill_in = [&](std::int64_t& size) { size = size == 0 ? config.embed_size : size; };
  fill_in(config.key_size);
  fill_in(config.value_size);
  fill_in(config.output_size);
  config.separate_projections =
      config.separate_projections || config.key_size != config.embed_size || config.value_size != config.embed_size;
  if (!config.output_bias) config.output_bias = config.bias;
  check_rate(checks, "dropout", config.dropout);
  check_rate(checks, "output_dropout", config.output_dropout);
  checks.require(is_float(config.dtype), "dtype is ", config.dtype, "; it must be f32, bf16, f16 or f64");

  const auto [index, count] = config.slice;
  checks.require(count > 0, "slice.count is ", count, "; it must be positive");
  checks.require(index >= 0 && index < count, "slice.index is ", index, "; it must be at least 0 and less than ",
                 "slice.count, ", count);
  checks.require(config.heads % count == 0, "slice.count ", count, " does not divide heads ", config.heads,
                 "; all slices must have the same number of heads");
  checks.require(config.kv_heads % count == 0, "slice.count ", count, " does not divide kv_heads ", config.kv_heads,
                 "; all slices must have the same number of kv heads");
  return config;
}

LayerCall::LayerCall(const MultiHeadAttentionConfig& layer, Device device, const ConstTensorView& given_query,
                     const ConstTensorView& given_key, const ConstTensorView& given_value,
                     const LayerOptions& call_options, const char* function)
    : config(layer),
      options(call_options),
      batched(given_query.rank() == 3),
      heads(config.heads / config.slice.count),
      kv_heads(config.kv_heads / config.slice.count),
      added_keys((config.add_bias_kv ? 1 : 0) + (config.add_zero_attention ? 1 : 0)) {
  core::count_call(&core::CallCounts::layer);
  const Checks checks(function, device);
  check_input(checks, config, "query", given_query, config.embed_size, "embed_size");
  checks.require(given_key.defined() || !given_value.defined(),
                 "value is given without key; give both, or neither for self-attention");
  const ConstTensorView& key_or_query = given_key.defined() ? given_key : given_query;
  const ConstTensorView& value_or_key = given_value.defined() ? given_value : key_or_query;
  check_input(checks, config, given_key.defined() ? "key" : "query, which is the key too,", key_or_query,
              config.key_size, "key_size");
  check_input(checks, config, given_value.defined() ? "value" : "key, which is the value too,", value_or_key,
              config.value_size, "value_size");
  for (const auto& [name, tensor] : {std::pair("key", &key_or_query), std::pair("value", &value_or_key)}) {
    checks.require(tensor->rank() == given_query.rank(), name, " has shape ", tensor->shape(), ", query has ",
                   given_query.shape(), "; either all inputs have a batch dimension, or none");
  }

  query = canonical(given_query, config.batch_first);
  key = canonical(key_or_query, config.batch_first);
  value = canonical(value_or_key, config.batch_first);
  checks.require(key.size(0) == query.size(0), "key has batch size ", key.size(0), ", query has ", query.size(0),
                 "; they must be equal", config.batch_first ? "" : " (batch_first is off: inputs are (L, B, E))");
  checks.require(value.size(0) == key.size(0) && value.size(1) == key.size(1), "value has shape ", value_or_key.shape(),
                 ", key has ", key_or_query.shape(), "; they must have the same number of tokens and batch rows");
  one_memory = is_same(key, value);
  one_input = one_memory && is_same(query, key);
  all_keys = key_length();
  check_options(checks);
  check_cache(checks);
}

void LayerCall::check_options(const Checks& checks) const {
  const AttentionOptions& given = options.attention;
  for (std::size_t n = 0; n < given.masks.size(); ++n) {
    checks.require(given.masks[n].view.rank() != 3, Name("attention.masks", n), " has shape ",
                   given.masks[n].view.shape(), ", which is ambiguous; use mask_of_batch for (B, Lq, Lk) or ",
                   "mask_of_heads for PyTorch's (B·Hq, Lq, Lk)");
  }
  checks.require(given.dropout.rate == 0.0, "attention.dropout.rate is ", given.dropout.rate,
                 "; the layer's rate is set in config.dropout");
  checks.require(given.workspace.data() == nullptr,
                 "attention.workspace is given; a layer takes its workspace in LayerOptions::workspace");
  checks.require(given.pages.table.empty() && given.pages.per_row == 0 && !given.key_scales.defined() &&
                     !given.value_scales.defined(),
                 "attention.pages and scales belong to a cache; pass the cache to the layer instead");
  checks.require(given.alibi_slopes.empty() || std::ssize(given.alibi_slopes) == config.heads,
                 "attention.alibi_slopes has ", given.alibi_slopes.size(), " values; it must have one for each of the ",
                 config.heads, config.heads == 1 ? " head" : " heads");
  checks.require(!given.sinks.defined() || given.sinks.shape() == Dims{config.heads}, "attention.sinks has shape ",
                 given.sinks.shape(), "; it must be (Hq) = (", config.heads, ")");
  checks.require(given.threads >= 0, "attention.threads is ", given.threads, "; it must be positive, or 0 for all");
  checks.require(options.position >= 0, "position is ", options.position, "; it must be at least 0");
  if (added_keys > 0) {
    const char* added = config.add_bias_kv ? "add_bias_kv" : "add_zero_attention";
    checks.require(!given.window.left && !given.window.right, "attention.window cannot be combined with ", added,
                   ": the added key has no position");
    checks.require(given.alibi_slopes.empty(), "attention.alibi_slopes cannot be combined with ", added,
                   ": the added key has no position");
    checks.require(given.packed.query_starts.empty(), "attention.packed cannot be combined with ", added,
                   ": give the sequences as batch rows");
  }
  if (config.context_length > 0) {
    const std::int64_t longest = std::max(query_length(), key_length());
    checks.require(longest <= config.context_length, "the sequence has ", longest,
                   " tokens, the stored causal mask is for ", config.context_length,
                   "; shorten the sequence, or make the layer with a larger context_length");
  }
}

void LayerCall::check_cache(const Checks& checks) {
  if (options.cache == nullptr) {
    checks.require(options.sequences.empty(),
                   "sequences are given without a cache; they are ids of sequences in a cache");
    return;
  }
  const KvCacheConfig& cache = options.cache->config();
  checks.require(one_input, "a cache is for self-attention; omit key and value");
  checks.require(options.cache->device() == device(), "the cache is on ", options.cache->device(), ", the layer on ",
                 device(), "; they must be on one device");
  checks.require(added_keys == 0, "a cache cannot be combined with add_bias_kv or add_zero_attention");
  checks.require(options.attention.packed.query_starts.empty(), "a cache cannot be combined with attention.packed");
  checks.require(options.position == 0, "position is ", options.position,
                 "; with a cache, it follows from the cached tokens");
  checks.require(options.attention.alignment.kind == Alignment::Kind::unnamed,
                 "attention.alignment is given; with a cache, query 0 follows the cached tokens");
  checks.require(cache.kv_heads == kv_heads, "the cache has ", cache.kv_heads,
                 cache.kv_heads == 1 ? " kv head" : " kv heads", ", the layer has ", kv_heads, "; they must be equal");
  checks.require(cache.head_size == config.head_size, "the cache has head size ", cache.head_size, ", the layer has ",
                 config.head_size, "; they must be equal");
  checks.require(cache.value_size == config.head_size, "the cache has value size ", cache.value_size,
                 ", the layer has ", config.head_size, "; they must be equal");
  checks.require(config.dtype != DType::f64, "a cache cannot hold f64; use an f32 layer");
  checks.require(options.sequences.empty() || std::ssize(options.sequences) == batch(), "sequences has ",
                 options.sequences.size(), " ids for ", batch(), " batch rows; give one for each");
  const std::vector<std::int64_t>& lengths = options.attention.key_lengths;
  checks.require(lengths.empty() || std::ssize(lengths) == batch(), "attention.key_lengths has ", lengths.size(),
                 " values for ", batch(), " batch rows; give one for each");
  all_keys = 0;
  for (std::int64_t b = 0; b < batch(); ++b) {
    checks.require(new_tokens(b) >= 0 && new_tokens(b) <= query_length(), "attention.key_lengths[", b, "] is ",
                   new_tokens(b), "; this call has ", query_length(), " tokens in each row");
    all_keys = std::max(all_keys, options.cache->length(sequence(b)) + new_tokens(b));
  }
  checks.require(config.context_length == 0 || all_keys <= config.context_length, "with this call a sequence has ",
                 all_keys, " tokens, the stored causal mask is for ", config.context_length,
                 "; shorten the sequence, or make the layer with a larger context_length");
}

LayerShapes LayerCall::shapes() const {
  const auto ordered = [&](std::int64_t width) {
    if (!batched) return Dims{query_length(), width};
    return config.batch_first ? Dims{batch(), query_length(), width} : Dims{query_length(), batch(), width};
  };
  LayerShapes shapes{ordered(config.output_size), {}, {}};
  if (options.weights != ReturnWeights::none) {
    shapes.weights = capture_shape({.mean_over_heads = options.weights == ReturnWeights::mean});
  }
  shapes.lse = without_missing_batch({batch(), heads, query_length()});
  return shapes;
}

// Attention checks the selected heads and queries.
Dims LayerCall::capture_shape(const Selection& of) const {
  const std::int64_t keys = all_keys + added_keys;
  const std::int64_t chosen_heads = of.heads.empty() ? heads : std::ssize(of.heads);
  const std::int64_t queries = of.queries.empty() ? query_length() : std::ssize(of.queries);
  return without_missing_batch(of.mean_over_heads ? Dims{batch(), queries, keys}
                                                  : Dims{batch(), chosen_heads, queries, keys});
}

Dims LayerCall::without_missing_batch(const Dims& shape) const {
  return batched ? shape : Dims(std::span(shape.begin() + 1, shape.end()));
}

void LayerCall::write_to(const LayerOutputs& outputs) {
  const Checks checks(kForward, query.device());
  const LayerShapes wanted = shapes();
  const bool f64 = config.dtype == DType::f64;
  checks.shaped("out", outputs.out, wanted.out, config.batch_first ? "(B, Lq, O)" : "(Lq, B, O)");
  if (f64) {
    checks.typed("out", outputs.out, {DType::f64});
  } else {
    checks.typed("out", outputs.out, {DType::f32, DType::bf16, DType::f16});
  }
  Apart tensors(checks);
  tensors.add_input("query", query);
  tensors.add_input("key", key);
  tensors.add_input("value", value);
  for (std::size_t n = 0; n < options.attention.masks.size(); ++n) {
    tensors.add_input(Name("attention.masks", n), options.attention.masks[n].view);
  }
  tensors.add_input("attention.sinks", options.attention.sinks);
  tensors.add_output("out", outputs.out);
  out = canonical(outputs.out, config.batch_first);

  checks.require(outputs.weights.defined() == (options.weights != ReturnWeights::none),
                 outputs.weights.defined() ? "outputs.weights is given, but options.weights is none"
                                           : "options.weights requests weights, but outputs.weights is undefined");
  const auto check = [&](const Name& name, const TensorView& given, const Dims& shape, const char* meaning) {
    checks.shaped(name, given, shape, meaning);
    checks.typed(name, given, {f64 ? DType::f64 : DType::f32});
    tensors.add_output(name, given);
  };
  if (options.weights != ReturnWeights::none) {
    check("weights", outputs.weights, wanted.weights,
          options.weights == ReturnWeights::mean ? "(B, Lq, Lk)" : "(B, Hq, Lq, Lk)");
    weights = with_batch(outputs.weights);
  }
  if (outputs.lse.defined()) {
    check("lse", outputs.lse, wanted.lse, "(B, Hq, Lq)");
    lse = with_batch(outputs.lse);
  }
  for (std::size_t n = 0; n < outputs.captures.size(); ++n) {
    const Selection& of = outputs.captures[n].of;
    check(Name("captures", n, ".to"), outputs.captures[n].to, capture_shape(of),
          of.mean_over_heads ? "(B, queries, Lk)" : "(B, heads, queries, Lk)");
  }
  captures = outputs.captures;
}

}  // namespace rapt::nn
