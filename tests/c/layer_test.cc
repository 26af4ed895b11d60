// The layer and files through C have the same bits as through C++.
#include <span>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "rapt/npy.h"
#include "rapt/rapt.h"
#include "rapt/safetensors.h"
#include "support/c_arguments.h"
#include "support/files.h"
#include "support/module_case.h"
#include "support/same_bits.h"

namespace rapt::test {
namespace {

#define EXPECT_GOOD(call) EXPECT_EQ(call, RAPT_OK) << rapt_last_error()
#define ASSERT_GOOD(call) ASSERT_EQ(call, RAPT_OK) << rapt_last_error()

// Sinks of four heads, and an additive mask, for the cases that have them.
const Tensor& sinks() {
  static const Tensor values = drawn("sinks", {4}).to(DType::f32);
  return values;
}
const Tensor& bias() {
  static const Tensor values = drawn("bias", {6, 6}).to(DType::f32);
  return values;
}

struct LayerCase {
  const char* name;
  MultiHeadAttentionConfig config;
  LayerOptions options;
  bool cross = false;
};

std::vector<LayerCase> layer_cases() {
  const MultiHeadAttentionConfig plain{.embed_size = 12, .heads = 4, .batch_first = true};
  std::vector<LayerCase> all = {{"Plain", plain, {}}};
  const auto add = [&](const char* name, const auto& change) {
    LayerCase one{name, plain, {}};
    change(one.config, one.options, one);
    all.push_back(std::move(one));
  };
  using Config = MultiHeadAttentionConfig;
  add("Causal", [](Config&, LayerOptions& o, LayerCase&) { o.attention.causal = true; });
  add("Sizes", [](Config& c, LayerOptions&, LayerCase& one) {
    c.kv_heads = 2, c.head_size = 6, c.key_size = 10, c.value_size = 7, c.output_size = 9, one.cross = true;
  });
  add("NoBiasButInOutput", [](Config& c, LayerOptions&, LayerCase&) { c.bias = false, c.output_bias = true; });
  add("Separate", [](Config& c, LayerOptions&, LayerCase&) { c.separate_projections = true; });
  add("SinksAndBias", [](Config&, LayerOptions& o, LayerCase&) {
    o.attention.sinks = sinks(), o.attention.masks = {Mask::add(bias())}, o.weights = ReturnWeights::per_head;
  });
  add("AddedKeys", [](Config& c, LayerOptions& o, LayerCase&) {
    c.add_bias_kv = c.add_zero_attention = true, o.weights = ReturnWeights::per_head;
  });
  add("Dropout", [](Config& c, LayerOptions& o, LayerCase&) {
    c.dropout = 0.3, c.output_dropout = 0.2, o.training = true, o.attention.dropout.seed = 77;
    o.attention.dropout.batch_start = 3, o.weights = ReturnWeights::mean;
  });
  add("SequenceFirst", [](Config& c, LayerOptions&, LayerCase&) { c.batch_first = false; });
  add("StoredMask", [](Config& c, LayerOptions&, LayerCase&) { c.context_length = 8; });
  add("Yarn", [](Config& c, LayerOptions& o, LayerCase&) {
    c.head_size = 8;
    c.rotary = RotaryOptions{.base = 500.0, .size = 4, .pairs = RotaryPairs::interleaved, .max_positions = 5};
    c.rotary->scaling =
        RotaryScaling::yarn(4.0, 16, {.beta_fast = 9.0, .beta_slow = 2.0, .attention_factor = 1.25, .truncate = false});
    o.position = 3;
  });
  add("Llama3", [](Config& c, LayerOptions&, LayerCase&) {
    c.head_size = 8, c.rotary = RotaryOptions{.scaling = RotaryScaling::llama3(8.0, 32, 1.5, 3.0)};
  });
  add("Dynamic", [](Config& c, LayerOptions&, LayerCase&) {
    c.head_size = 8, c.rotary = RotaryOptions{.scaling = RotaryScaling::dynamic(2.0, 4, 16)};
  });
  add("Slice", [](Config& c, LayerOptions&, LayerCase&) { c.slice = {1, 2}; });
  add("Bf16", [](Config& c, LayerOptions&, LayerCase&) { c.dtype = DType::bf16; });
  add("F64", [](Config& c, LayerOptions&, LayerCase&) { c.dtype = DType::f64; });
  return all;
}

TEST(LayerInC, HasTheBitsOfCppForwardAndBackward) {
  for (const LayerCase& one : layer_cases()) {
    SCOPED_TRACE(one.name);
    const MultiHeadAttention layer(one.config, 5);
    const MultiHeadAttentionConfig& config = layer.config();
    const DType type = config.dtype == DType::f64 ? DType::f64 : DType::f32;
    const bool first = config.batch_first;
    const auto shaped = [&](std::int64_t tokens, std::int64_t size) {
      return first ? Dims{2, tokens, size} : Dims{tokens, 2, size};
    };
    const Tensor x = drawn("x", shaped(6, config.embed_size)).to(type);
    const Tensor key = drawn("key", shaped(5, config.key_size)).to(type);
    const Tensor value = drawn("value", shaped(5, config.value_size)).to(type);
    const Tensor dout = drawn("dout", shaped(6, config.output_size)).to(type);
    const ConstTensorView k = one.cross ? key.view() : ConstTensorView(), v = one.cross ? value.view() : k;
    const std::int64_t keys = (one.cross ? 5 : 6) + (config.add_bias_kv ? 1 : 0) + (config.add_zero_attention ? 1 : 0);
    const Dims weights_shape =
        one.options.weights == ReturnWeights::mean ? Dims{2, 6, keys} : Dims{2, config.heads, 6, keys};

    const Tensor dweights = drawn("dweights", weights_shape).to(type);
    const bool with_weights = one.options.weights != ReturnWeights::none;
    const bool with_sinks = one.options.attention.sinks.defined();
    const LayerUpstream upstream{.dout = dout, .dweights = with_weights ? dweights.view() : ConstTensorView()};

    LayerActivations kept;
    LayerOptions options = one.options;
    options.keep = &kept;
    Tensor out(shaped(6, config.output_size), type), weights(weights_shape, type), dx(x.shape(), type);
    LayerOutputs outputs{.out = out};
    if (with_weights) outputs.weights = weights;
    layer.forward(outputs, x, k, v, options);
    std::vector<Tensor> dparameters = layer.zero_gradients();
    Tensor dsinks({4}), dbias({6, 6});
    LayerGradients wanted{.dquery = dx, .parameters = dparameters};
    if (with_sinks) wanted.dsinks = dsinks, wanted.dmasks = {{0, dbias}};
    layer.backward(wanted, upstream, kept, x, k, v, options);

    CArguments c;
    rapt_layer* in_c = nullptr;
    rapt_layer_activations* kept_in_c = nullptr;
    rapt_parameter_gradients* gradients_in_c = nullptr;
    ASSERT_GOOD(rapt_layer_create(&in_c, c.config(one.config), 5));
    ASSERT_GOOD(rapt_layer_activations_create(&kept_in_c));
    ASSERT_GOOD(rapt_parameter_gradients_create(&gradients_in_c, in_c));
    Tensor out_c(out.shape(), type), weights_c(weights_shape, type), dx_c(x.shape(), type);
    LayerOutputs outputs_c{.out = out_c};
    if (with_weights) outputs_c.weights = weights_c;
    rapt_layer_options* options_c = c.options(options);
    options_c->keep = kept_in_c;
    EXPECT_GOOD(rapt_layer_forward(in_c, c.outputs(outputs_c), c.tensor(x), c.tensor(k), c.tensor(v), options_c));
    EXPECT_TRUE(same_bits(out_c, out));
    EXPECT_TRUE(same_bits(weights_c, weights));
    Tensor dsinks_c({4}), dbias_c({6, 6});
    LayerGradients wanted_c{.dquery = dx_c};
    if (with_sinks) wanted_c.dsinks = dsinks_c, wanted_c.dmasks = {{0, dbias_c}};
    rapt_layer_gradients* gradients = c.gradients(wanted_c);
    gradients->parameters = gradients_in_c;
    EXPECT_GOOD(rapt_layer_backward(in_c, gradients, c.upstream(upstream), kept_in_c, c.tensor(x), c.tensor(k),
                                    c.tensor(v), options_c));
    EXPECT_TRUE(same_bits(dx_c, dx) && same_bits(dsinks_c, dsinks) && same_bits(dbias_c, dbias));
    const std::vector<NamedTensor> parameters = layer.parameters();
    for (std::size_t n = 0; n < parameters.size(); ++n) {
      SCOPED_TRACE(parameters[n].name);
      DLTensor value_c, gradient_c;
      ASSERT_GOOD(rapt_layer_parameter(in_c, parameters[n].name.c_str(), &value_c));
      ASSERT_GOOD(rapt_parameter_gradients_at(gradients_in_c, parameters[n].name.c_str(), &gradient_c));
      const Dims shape(std::span<const std::int64_t>(value_c.shape, static_cast<std::size_t>(value_c.ndim)));
      EXPECT_TRUE(same_bits(ConstTensorView(value_c.data, config.dtype, shape), parameters[n].value));
      EXPECT_TRUE(same_bits(ConstTensorView(gradient_c.data, type, shape), dparameters[n]));
    }
    rapt_parameter_gradients_destroy(gradients_in_c);
    rapt_layer_activations_destroy(kept_in_c);
    rapt_layer_destroy(in_c);
  }
}

TEST(LayerInC, GivesItsConfigBackWithEveryDefaultFilledIn) {
  for (const LayerCase& one : layer_cases()) {
    SCOPED_TRACE(one.name);
    CArguments c;
    rapt_layer* layer = nullptr;
    ASSERT_GOOD(rapt_layer_create(&layer, c.config(one.config), 5));
    rapt_layer_config got;
    rapt_layer_config_init(&got, sizeof got);
    ASSERT_GOOD(rapt_layer_get_config(layer, &got));
    rapt_layer_config wanted = *c.config(MultiHeadAttention(one.config, 5).config());
    ASSERT_EQ(got.rotary == nullptr, wanted.rotary == nullptr);
    if (got.rotary != nullptr) {
      EXPECT_TRUE(same_bytes(*got.rotary, *wanted.rotary));
    }
    got.rotary = wanted.rotary = nullptr;
    EXPECT_TRUE(same_bytes(got, wanted));
    rapt_layer_destroy(layer);
  }
}

TEST(LayerInC, LoadsWhatCppLoadsAndSaysWhatItFound) {
  const std::string path = RAPT_TEST_DATA "/layers/gpt2.safetensors";
  const LoadedLayer wanted = MultiHeadAttention::load(path, {.heads = 2, .batch_first = true});
  rapt_load_options options;
  rapt_load_options_init(&options, sizeof options);
  options.heads = 2, options.batch_first = 1;
  rapt_layer* layer = nullptr;
  ASSERT_GOOD(rapt_layer_load(&layer, path.c_str(), &options));
  rapt_found_layer found;
  rapt_found_layer_init(&found, sizeof found);
  ASSERT_GOOD(rapt_layer_found(layer, &found));
  EXPECT_EQ(found.prefix, wanted.found.prefix);
  EXPECT_EQ(found.family, RAPT_NAMES_C_ATTN);
  EXPECT_EQ(found.transposed, 1);
  ASSERT_EQ(found.tensors_count, wanted.found.tensors.size());
  for (std::size_t n = 0; n < found.tensors_count; ++n) {
    EXPECT_EQ(found.tensors[n].tensor, wanted.found.tensors[n].tensor);
    EXPECT_EQ(found.tensors[n].role, wanted.found.tensors[n].role);
    EXPECT_NE(std::string(found.text).find(wanted.found.tensors[n].tensor + ": " + wanted.found.tensors[n].role),
              std::string::npos);
  }
  EXPECT_EQ(found.left_over_count, wanted.found.left_over.size());
  EXPECT_EQ(found.missing_count, wanted.found.missing.size());

  const TemporaryFolder folder;
  rapt_save_options save;
  rapt_save_options_init(&save, sizeof save);
  save.family = RAPT_NAMES_W_QUERY, save.has_packed = 1, save.prefix = "a.b", save.has_dtype = 1, save.dtype = RAPT_F16;
  ASSERT_GOOD(rapt_layer_save(layer, (folder / "c.safetensors").c_str(), &save));
  wanted.layer.save(folder / "cpp.safetensors",
                    {.family = NameFamily::w_query, .prefix = "a.b", .packed = false, .dtype = DType::f16});
  EXPECT_EQ(read_raw(folder / "c.safetensors"), read_raw(folder / "cpp.safetensors"));
  rapt_layer_destroy(layer);
}

// Decodes two tokens per call through a cache, with the second sequence first.
TEST(LayerInC, DecodesThroughACacheWithTheBitsOfCpp) {
  const MultiHeadAttentionConfig config{.embed_size = 12, .heads = 4, .kv_heads = 2, .batch_first = true};
  const MultiHeadAttention layer(config, 3);
  KvCache cpp({.kv_heads = 2, .head_size = 3, .sequences = 2, .length = 8});
  CArguments c;
  rapt_layer* in_c = nullptr;
  rapt_kv_cache* cache = nullptr;
  rapt_kv_cache_config cache_config;
  rapt_kv_cache_config_init(&cache_config, sizeof cache_config);
  cache_config.kv_heads = 2, cache_config.head_size = 3, cache_config.sequences = 2, cache_config.length = 8;
  ASSERT_GOOD(rapt_layer_create(&in_c, c.config(config), 3));
  ASSERT_GOOD(rapt_kv_cache_create(&cache, &cache_config));
  for (std::int64_t n = 0; n < 2; ++n) {
    std::int64_t id = -1;
    ASSERT_GOOD(rapt_kv_cache_add(cache, &id));
    EXPECT_EQ(id, cpp.add());
  }
  const std::int64_t ids[] = {1, 0};
  LayerOptions options{.attention = {.causal = true}, .sequences = ids};
  rapt_layer_options* options_c = c.options(options);
  options.cache = &cpp, options_c->cache = cache;
  for (const char* step : {"first", "second", "third"}) {
    const Tensor x = drawn(step, {2, 2, 12}).to(DType::f32);
    Tensor wanted({2, 2, 12}), got({2, 2, 12});
    layer.forward({.out = wanted}, x, {}, {}, options);
    ASSERT_GOOD(
        rapt_layer_forward(in_c, c.outputs(LayerOutputs{.out = got}), c.tensor(x), nullptr, nullptr, options_c));
    EXPECT_TRUE(same_bits(got, wanted)) << step;
  }
  std::int64_t length = 0;
  ASSERT_GOOD(rapt_kv_cache_length(cache, 1, &length));
  EXPECT_EQ(length, 6);
  rapt_kv_cache_destroy(cache);
  rapt_layer_destroy(in_c);
}

TEST(LayerInC, LoadsWithEveryOption) {
  const TemporaryFolder folder;
  const std::string path = folder / "two.safetensors";
  const MultiHeadAttention first({.embed_size = 8, .heads = 4, .kv_heads = 2, .head_size = 4}, 1),
      second({.embed_size = 6, .heads = 2}, 2);
  StateDict state = first.state_dict({.family = NameFamily::wq, .prefix = "a.0"});
  for (NamedTensor& tensor : second.state_dict({.prefix = "b.0"}).tensors) state.tensors.push_back(std::move(tensor));
  write_safetensors(path, state.tensors);

  LoadOptions options{.prefix = "a", .heads = 8, .kv_heads = 4, .batch_first = true, .add_zero_attention = true};
  options.dropout = 0.25, options.dtype = DType::bf16;
  options.rotary = RotaryOptions{.base = 77.0};
  const LoadedLayer wanted = MultiHeadAttention::load(path, options);
  CArguments c;
  rapt_load_options in_c;
  rapt_load_options_init(&in_c, sizeof in_c);
  in_c.prefix = "a", in_c.heads = 8, in_c.kv_heads = 4, in_c.batch_first = 1, in_c.add_zero_attention = 1;
  in_c.dropout = 0.25, in_c.has_dtype = 1, in_c.dtype = RAPT_BF16, in_c.rotary = c.rotary(options.rotary);
  rapt_layer* layer = nullptr;
  ASSERT_GOOD(rapt_layer_load(&layer, path.c_str(), &in_c));
  rapt_layer_config got;
  rapt_layer_config_init(&got, sizeof got);
  ASSERT_GOOD(rapt_layer_get_config(layer, &got));
  ASSERT_NE(got.rotary, nullptr);
  EXPECT_EQ(got.rotary->base, 77.0);
  rapt_layer_config as_cpp = *c.config(wanted.layer.config());
  got.rotary = as_cpp.rotary = nullptr;
  EXPECT_TRUE(same_bytes(got, as_cpp));
  rapt_layer_destroy(layer);

  in_c.kv_heads = options.kv_heads = 3;  // contradicts the shapes
  EXPECT_EQ(rapt_layer_load(&layer, path.c_str(), &in_c), RAPT_BAD_ARGUMENT);
  EXPECT_EQ(rapt_last_error(), refusal_of([&] { (void)MultiHeadAttention::load(path, options); }));
}

// ---------------------------------------------------------------- files

TEST(FilesInC, AreReadAndWrittenWithTheirOptions) {
  rapt_npy_options options;
  rapt_npy_options_init(&options, sizeof options);
  rapt_array* array = nullptr;
  EXPECT_EQ(rapt_npy_read(&array, test_file("int64.npy").c_str(), &options), RAPT_FILE_ERROR);
  options.has_integers_as = 1, options.integers_as = RAPT_F64;
  ASSERT_GOOD(rapt_npy_read(&array, test_file("int64.npy").c_str(), &options));
  DLTensor got;
  ASSERT_GOOD(rapt_array_tensor(array, &got));
  const NpyArray wanted = read_npy(test_file("int64.npy"), {.integers_as = DType::f64});
  const Dims shape(std::span<const std::int64_t>(got.shape, static_cast<std::size_t>(got.ndim)));
  const Dims strides(std::span<const std::int64_t>(got.strides, static_cast<std::size_t>(got.ndim)));
  EXPECT_TRUE(same_bits(ConstTensorView(got.data, DType::f64, shape, strides), wanted.view()));
  rapt_array_destroy(array);

  const TemporaryFolder folder;
  const Tensor zeros({100, 100});
  CArguments c;
  const rapt_named_tensor tensors[] = {{"zeros", c.tensor(zeros)}};
  ASSERT_GOOD(rapt_npz_write((folder / "c.npz").c_str(), tensors, 1, 1));
  write_npz(folder / "cpp.npz", {{"zeros", zeros}}, {.compress = true});
  EXPECT_EQ(read_raw(folder / "c.npz"), read_raw(folder / "cpp.npz"));
}

}  // namespace
}  // namespace rapt::test
