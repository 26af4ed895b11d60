// Layers for the digest: a few of each kind, so that the digest covers every elementwise step of a layer.
#include <cstddef>
#include <optional>
#include <vector>

#include "cases/digest.h"
#include "rapt/kv_cache.h"
#include "rapt/layers.h"
#include "rapt/multi_head_attention.h"
#include "rapt/rotary.h"
#include "rapt/transformer.h"

namespace rapt::cases {

namespace {

Tensor numbers(std::uint64_t seed, const Dims& shape, DType dtype) {
  Stream stream(seed);
  Tensor exact(shape, DType::f64);
  for (double& value : exact.values<double>()) value = 2.0 * stream.uniform() - 1.0;
  return exact.to(dtype);
}

// Biases are initialized to zeros, which would not show errors.
void draw_biases(MultiHeadAttention& layer) {
  std::uint64_t seed = 100;
  for (const NamedTensor& parameter : layer.parameters()) {
    ++seed;
    if (parameter.value.rank() == 1) {
      layer.set_parameter(parameter.name, numbers(seed, parameter.value.shape(), parameter.value.dtype()));
    }
  }
}

// Forward in training, with mean weights, and backward.
void add_training(Engine engine, const MultiHeadAttentionConfig& config, DType inputs, bool self, Digest& digest) {
  MultiHeadAttention layer(config, 7);
  draw_biases(layer);
  const std::int64_t queries = 9, keys = self ? queries : 13;
  const auto shape = [&](std::int64_t length, std::int64_t width) {
    return config.batch_first ? Dims{3, length, width} : Dims{length, 3, width};
  };
  const std::int64_t key_size = config.key_size > 0 ? config.key_size : config.embed_size;
  const Tensor x = numbers(1, shape(queries, config.embed_size), inputs);
  const Tensor memory = self ? Tensor() : numbers(2, shape(keys, key_size), inputs);
  const ConstTensorView key = self ? ConstTensorView() : memory.view();
  LayerActivations kept;
  LayerOptions options;
  options.attention.engine = engine;
  options.attention.dropout.seed = 5;
  options.weights = ReturnWeights::mean;
  options.training = true;
  options.position = 3;
  options.keep = &kept;
  const LayerResult result = layer.forward(x, key, {}, options);
  digest.add(result.out.view());
  digest.add(result.weights.view());

  const bool f64 = config.dtype == DType::f64;
  const Tensor dout = numbers(3, result.out.shape(), inputs);
  const Tensor dweights = numbers(4, result.weights.shape(), f64 ? DType::f64 : DType::f32);
  Tensor dquery(x.shape(), f64 ? DType::f64 : DType::f32);
  Tensor dkey(self ? Dims{0} : memory.shape(), f64 ? DType::f64 : DType::f32);
  std::vector<Tensor> gradients = layer.zero_gradients();
  layer.backward({.dquery = dquery, .dkey = self ? TensorView() : dkey.view(), .parameters = gradients},
                 {dout, dweights}, kept, x, key, {}, options);
  digest.add(dquery.view());
  if (!self) digest.add(dkey.view());
  for (const Tensor& gradient : gradients) digest.add(gradient.view());
}

// Appends tokens to two sequences in uneven steps, and forks one of them.
void add_cached_steps(Engine engine, const KvCacheConfig& cache_config, DType inputs, Digest& digest) {
  const MultiHeadAttention layer(
      {.embed_size = 48, .heads = 6, .kv_heads = 3, .batch_first = true, .rotary = RotaryOptions{.max_positions = 16}},
      11);
  KvCacheConfig config = cache_config;
  config.kv_heads = 3, config.head_size = 8, config.sequences = 3;
  KvCache cache(config);
  std::vector<std::int64_t> ids = {cache.add(), cache.add()};
  LayerOptions options;
  options.attention.engine = engine;
  options.attention.causal = true;
  options.cache = &cache;
  std::uint64_t seed = 30;
  const auto step = [&](std::int64_t length, const std::vector<std::int64_t>& lengths) {
    options.sequences = ids;
    options.attention.key_lengths = lengths;
    const Tensor x = numbers(++seed, {2, length, 48}, inputs);
    digest.add(layer.forward(x, options).out.view());
  };
  step(11, {11, 5});
  step(1, {});
  ids[1] = cache.fork(ids[0], 7);
  for (int n = 0; n < 12; ++n) step(1, {});
  step(4, {});
}

void add_rotations(Digest& digest) {
  for (const RotaryPairs pairs : {RotaryPairs::half_split, RotaryPairs::interleaved}) {
    const Rotary rotary(20, {.size = 12, .pairs = pairs, .max_positions = 8});
    for (const DType from_type : {DType::f32, DType::bf16, DType::f16, DType::f64}) {
      const Tensor from = numbers(40, {2, 5, 3, 20}, from_type);
      Tensor to(from.shape(), from_type);
      rotary.apply(from.view(), to.view(), 6);
      digest.add(to.view());
      rotary.apply(to.view(), 6, {.back = true});
      digest.add(to.view());
      if (from_type == DType::f64) continue;
      Tensor wide({2, 5, 3, 40});
      const TensorView every_second = wide.view().split(3, 20).select(4, 0);
      rotary.apply(from.view(), every_second, 100);
      digest.add(wide.view());
    }
  }
}

void add_model(DType dtype, Digest& digest) {
  Transformer model({.vocabulary = 11,
                     .context = 12,
                     .width = 24,
                     .layers = 2,
                     .heads = 3,
                     .hidden = 40,
                     .dropout = 0.1,
                     .dtype = dtype},
                    3);
  std::vector<std::int32_t> tokens, targets;
  for (std::int32_t n = 0; n < 4 * 12; ++n) {
    tokens.push_back((n * 7 + n / 12) % 11);
    targets.push_back(n % 5 == 0 ? kNoTarget : (n * 3 + 1) % 11);
  }
  for (std::uint64_t step = 0; step < 3; ++step) {
    digest.add(model.add_gradients(tokens, targets, 4, 1.0, step));
    for (const NamedTensor& gradient : model.gradients()) digest.add(gradient.value);
    digest.add(model.step({.rate = 0.01, .weight_decay = 0.1}, 0.5));
  }
  for (const NamedTensor& parameter : model.parameters()) digest.add(parameter.value);
  digest.add(model.logits(tokens, 4).view());
  if (dtype == DType::f64) return;
  TransformerCache cache;
  digest.add(model.logits(std::span(tokens).first(5), cache).view());
  digest.add(model.logits(std::span(tokens).subspan(5, 1), cache).view());
}

}  // namespace

void add_layers(Engine engine, Digest& digest) {
  const MultiHeadAttentionConfig with_all{.embed_size = 36,
                                          .heads = 6,
                                          .kv_heads = 2,
                                          .head_size = 10,
                                          .output_size = 23,
                                          .dropout = 0.2,
                                          .output_dropout = 0.3,
                                          .rotary = RotaryOptions{.size = 6}};
  const MultiHeadAttentionConfig with_added_keys{.embed_size = 32,
                                                 .heads = 4,
                                                 .key_size = 20,
                                                 .value_size = 20,
                                                 .add_bias_kv = true,
                                                 .add_zero_attention = true,
                                                 .batch_first = true};
  for (const DType dtype : {DType::f32, DType::bf16, DType::f16, DType::f64}) {
    if (dtype == DType::f64 && engine != Engine::reference) continue;
    MultiHeadAttentionConfig config = with_all;
    config.dtype = dtype;
    for (const bool batch_first : {false, true}) {
      config.batch_first = batch_first;
      add_training(engine, config, dtype, true, digest);
      add_training(engine, config, dtype, false, digest);
    }
    config = with_added_keys;
    config.dtype = dtype;
    add_training(engine, config, dtype, false, digest);
  }
  for (const DType dtype : {DType::f32, DType::bf16, DType::f16, DType::i8}) {
    add_cached_steps(engine, {.dtype = dtype, .length = 40}, DType::f32, digest);
    add_cached_steps(engine, {.dtype = dtype, .page_size = 16, .pages = 8}, DType::bf16, digest);
  }
  if (engine == Engine::reference) {
    add_model(DType::f64, digest);
  } else {
    add_rotations(digest);
    add_model(DType::f32, digest);
  }
}

}  // namespace rapt::cases
