// What MultiHeadAttention guarantees besides PyTorch's results: the same bits however a call is made, slices that add
// up, parameters with PyTorch's names and distributions, dropout, and memory that is reused.

#include "rapt/multi_head_attention.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "rapt/packed_matrix.h"
#include "rapt/random.h"
#include "support/allocations.h"
#include "support/module_case.h"
#include "support/part_call.h"
#include "support/relative_error.h"

namespace rapt::test {
namespace {

Tensor numbers(const char* name, const Dims& shape, DType dtype = DType::f32) { return drawn(name, shape).to(dtype); }

// A small layer with groups, biases and odd sizes.
MultiHeadAttentionConfig small() {
  MultiHeadAttentionConfig config;
  config.embed_size = 24, config.heads = 4, config.kv_heads = 2, config.head_size = 10, config.output_size = 18;
  config.batch_first = true;
  return config;
}

// A layer with biases that are not zero.
MultiHeadAttention layer_with(const MultiHeadAttentionConfig& config) {
  MultiHeadAttention layer(config, 7);
  for (const NamedTensor& parameter : layer.parameters()) {
    if (parameter.value.rank() == 1) {
      layer.set_parameter(parameter.name, numbers(parameter.name.c_str(), parameter.value.shape()));
    }
  }
  return layer;
}

void copy_parameter(const MultiHeadAttention& from, const std::string& name, MultiHeadAttention& to) {
  for (const NamedTensor& parameter : from.parameters()) {
    if (parameter.name == name) to.set_parameter(name, parameter.value);
  }
}

ConstTensorView parameter_of(const MultiHeadAttention& layer, const std::string& name) {
  for (const NamedTensor& parameter : layer.parameters()) {
    if (parameter.name == name) return parameter.value;
  }
  return {};
}

LayerOptions causal() { return {.attention = {.causal = true}}; }

// ---- Same bits ------------------------------------------------------------------------------------------------------

TEST(MultiHeadAttention, SelfAttentionIsTheSameTensorThreeTimes) {
  const MultiHeadAttention layer = layer_with(small());
  const Tensor x = numbers("x", {3, 37, 24}), copy_of_x = x.clone(), another = x.clone();
  const Tensor out = layer.forward(x, causal()).out;
  EXPECT_TRUE(same_bits(layer.forward(x, x, x, causal()).out, out));
  EXPECT_TRUE(same_bits(layer.forward(x, copy_of_x, {}, causal()).out, out));       // key and value are one tensor
  EXPECT_TRUE(same_bits(layer.forward(x, copy_of_x, another, causal()).out, out));  // three products
}

TEST(MultiHeadAttention, PackedAndSeparateProjectionsGiveTheSameBits) {
  const MultiHeadAttention packed = layer_with(small());
  MultiHeadAttentionConfig config = small();
  config.separate_projections = true;
  MultiHeadAttention separate(config);
  for (const char* name : {"in_proj_bias", "out_proj.weight", "out_proj.bias"}) copy_parameter(packed, name, separate);
  const ConstTensorView all = parameter_of(packed, "in_proj_weight");  // (80, 24): 40 rows of q, 20 of k, 20 of v
  separate.set_parameter("q_proj_weight", all.slice(0, 0, 40));
  separate.set_parameter("k_proj_weight", all.slice(0, 40, 60));
  separate.set_parameter("v_proj_weight", all.slice(0, 60, 80));
  const Tensor x = numbers("x", {2, 19, 24});
  EXPECT_TRUE(same_bits(separate.forward(x, causal()).out, packed.forward(x, causal()).out));
}

TEST(MultiHeadAttention, OrderOfDimensionsDoesNotShow) {
  const MultiHeadAttention batch_first = layer_with(small());
  MultiHeadAttentionConfig config = small();
  config.batch_first = false;
  const MultiHeadAttention tokens_first = layer_with(config);
  const Tensor x = numbers("x", {3, 11, 24});  // (B, L, E)
  const Tensor transposed = Tensor::copy_of(x.view().transpose(0, 1));
  const LayerOptions options = {.attention = {.causal = true}, .weights = ReturnWeights::per_head};
  const LayerResult a = batch_first.forward(x, options);
  const LayerResult b = tokens_first.forward(transposed, options);
  EXPECT_TRUE(same_bits(b.out.view().transpose(0, 1), a.out));
  EXPECT_TRUE(same_bits(b.weights, a.weights));
  // The tokens-first tensor, viewed as batch-first, may be passed to the batch-first layer.
  EXPECT_TRUE(same_bits(batch_first.forward(transposed.view().transpose(0, 1), options).out, a.out));
}

TEST(MultiHeadAttention, WithoutBatchDimensionItIsABatchOfOne) {
  for (const bool batch_first : {true, false}) {
    MultiHeadAttentionConfig config = small();
    config.batch_first = batch_first;
    const MultiHeadAttention layer = layer_with(config);
    const Tensor x = numbers("x", {9, 24});
    const LayerOptions options = {.weights = ReturnWeights::mean};
    const LayerResult one = layer.forward(x, options);
    EXPECT_EQ(one.out.shape(), Dims({9, 18}));
    EXPECT_EQ(one.weights.shape(), Dims({9, 9}));
    const int batch = batch_first ? 0 : 1;
    const LayerResult batched = layer.forward(x.view().unsqueeze(batch), options);
    EXPECT_TRUE(same_bits(one.out, batched.out.view().select(batch, 0)));
    EXPECT_TRUE(same_bits(one.weights, batched.weights.view().select(0, 0)));
  }
}

TEST(MultiHeadAttention, ARowHasTheSameBitsAloneAndOnAnyNumberOfThreads) {
  const MultiHeadAttention layer = layer_with(small());
  const Tensor x = numbers("x", {5, 70, 24});
  LayerOptions options = causal();
  options.attention.threads = 1;
  const Tensor all = layer.forward(x, options).out;
  for (const int threads : {2, 7}) {
    options.attention.threads = threads;
    EXPECT_TRUE(same_bits(layer.forward(x, options).out, all)) << threads;
  }
  for (std::int64_t b = 0; b < 5; ++b) {
    EXPECT_TRUE(same_bits(layer.forward(x.view().slice(0, b, b + 1), options).out, all.view().slice(0, b, b + 1)));
  }
  const ConstTensorView begin = x.view().slice(1, 0, 33);  // under a causal mask later tokens do not matter
  EXPECT_TRUE(same_bits(layer.forward(begin, options).out, all.view().slice(1, 0, 33)));
}

TEST(MultiHeadAttention, SixteenBitInputsAreRoundedOnceAtTheEnd) {
  for (const DType dtype : {DType::bf16, DType::f16}) {
    const MultiHeadAttention layer = layer_with(small());
    const Tensor x = numbers("x", {2, 13, 24}, dtype);
    const Tensor wide = x.to(DType::f32);
    const LayerResult result = layer.forward(x, causal());
    EXPECT_EQ(result.out.dtype(), dtype);
    EXPECT_TRUE(same_bits(result.out, layer.forward(wide, causal()).out.to(dtype)));
  }
}

TEST(MultiHeadAttention, SixteenBitParametersAreTheirRoundedValues) {
  for (const DType dtype : {DType::bf16, DType::f16}) {
    MultiHeadAttentionConfig config = small();
    config.dtype = dtype;
    const MultiHeadAttention narrow = layer_with(config);
    MultiHeadAttention wide = layer_with(small());
    for (const NamedTensor& parameter : narrow.parameters()) {
      EXPECT_EQ(parameter.value.dtype(), dtype);
      wide.set_parameter(parameter.name, parameter.value);
    }
    const Tensor x = numbers("x", {2, 13, 24});
    EXPECT_TRUE(same_bits(narrow.forward(x, causal()).out, wide.forward(x, causal()).out));
  }
}

// ---- Slices ---------------------------------------------------------------------------------------------------------

// The outputs of `count` slices, added up in double.
Tensor sum_of_slices(const MultiHeadAttention& layer, std::int64_t count, const ConstTensorView& x,
                     const LayerOptions& options) {
  Tensor sum;
  for (std::int64_t index = 0; index < count; ++index) {
    const Tensor part = layer.slice(index, count).forward(x, options).out.to(DType::f64);
    if (index == 0) {
      sum = part.clone();
      continue;
    }
    for (std::size_t n = 0; n < sum.values<double>().size(); ++n) sum.values<double>()[n] += part.values<double>()[n];
  }
  return sum;
}

TEST(MultiHeadAttention, SlicesOfAnyDivisionAddUpToTheWhole) {
  for (const DType dtype : {DType::f64, DType::f32}) {
    for (const bool separate : {false, true}) {
      MultiHeadAttentionConfig config;
      config.embed_size = 24, config.heads = 12, config.kv_heads = 12, config.batch_first = true, config.dtype = dtype;
      config.add_bias_kv = true, config.add_zero_attention = true, config.dropout = 0.2, config.output_dropout = 0.3;
      config.separate_projections = separate;
      const MultiHeadAttention layer = layer_with(config);
      const Tensor x = numbers("x", {2, 7, 24}, dtype);
      const Tensor mask = numbers("mask", {2, 12, 7, 7}, dtype), sinks = numbers("sinks", {12}, dtype);
      LayerOptions options;
      options.attention.masks = {Mask::add(mask)};
      options.attention.sinks = sinks;
      options.attention.dropout.seed = 5;
      options.training = true;
      const Tensor whole = layer.forward(x, options).out;
      for (const std::int64_t count : {1, 2, 3, 4, 6, 12}) {
        EXPECT_TRUE(is_near(sum_of_slices(layer, count, x, options), whole, dtype == DType::f64 ? 1e-13 : 2e-6))
            << count;
      }
    }
  }
}

TEST(MultiHeadAttention, SlicesOfGroupedHeadsAddUpToo) {
  MultiHeadAttentionConfig config;
  config.embed_size = 24, config.heads = 12, config.kv_heads = 4, config.batch_first = true, config.dtype = DType::f64;
  const MultiHeadAttention layer = layer_with(config);
  const Tensor x = numbers("x", {2, 7, 24}, DType::f64);
  LayerOptions options = causal();
  for (int head = 0; head < 12; ++head) options.attention.alibi_slopes.push_back(0.1 * head);
  const Tensor whole = layer.forward(x, options).out;
  for (const std::int64_t count : {2, 4}) {
    EXPECT_TRUE(is_near(sum_of_slices(layer, count, x, options), whole, 1e-13));
  }
}

TEST(MultiHeadAttention, ASliceDrawsItsPartOfTheWhole) {
  MultiHeadAttentionConfig config = small();
  config.add_bias_kv = true;
  const MultiHeadAttention whole(config, 3);
  for (std::int64_t index = 0; index < 2; ++index) {
    config.slice = {index, 2};
    const MultiHeadAttention drawn_alone(config, 3);
    const MultiHeadAttention cut = whole.slice(index, 2);
    const std::vector<NamedTensor> expected = cut.parameters();
    const std::vector<NamedTensor> found = drawn_alone.parameters();
    ASSERT_EQ(found.size(), expected.size());
    for (std::size_t n = 0; n < found.size(); ++n) {
      EXPECT_EQ(found[n].name, expected[n].name);
      EXPECT_TRUE(same_bits(found[n].value, expected[n].value)) << found[n].name;
    }
  }
}

// ---- Parameters -----------------------------------------------------------------------------------------------------

std::vector<std::string> names_of(const MultiHeadAttentionConfig& config) {
  std::vector<std::string> names;
  for (const NamedTensor& parameter : MultiHeadAttention(config).parameters()) {
    names.push_back(parameter.name + " " + to_string(parameter.value.shape()));
  }
  return names;
}

TEST(MultiHeadAttention, ParametersAreNamedAsPyTorchNamesThem) {
  using ::testing::ElementsAre;
  EXPECT_THAT(names_of({.embed_size = 8, .heads = 2}), ElementsAre("in_proj_weight (24, 8)", "in_proj_bias (24,)",
                                                                   "out_proj.weight (8, 8)", "out_proj.bias (8,)"));
  EXPECT_THAT(names_of({.embed_size = 8, .heads = 2, .bias = false}),
              ElementsAre("in_proj_weight (24, 8)", "out_proj.weight (8, 8)"));
  EXPECT_THAT(names_of({.embed_size = 8, .heads = 2, .key_size = 5, .value_size = 7, .add_bias_kv = true}),
              ElementsAre("q_proj_weight (8, 8)", "k_proj_weight (8, 5)", "v_proj_weight (8, 7)", "in_proj_bias (24,)",
                          "bias_k (1, 1, 8)", "bias_v (1, 1, 8)", "out_proj.weight (8, 8)", "out_proj.bias (8,)"));
  EXPECT_THAT(names_of(small()), ElementsAre("in_proj_weight (80, 24)", "in_proj_bias (80,)",
                                             "out_proj.weight (18, 40)", "out_proj.bias (18,)"));
}

struct Moments {
  double mean = 0.0, deviation = 0.0, largest = 0.0;
};

Moments moments_of(const ConstTensorView& view) {
  const Tensor copy = Tensor::copy_of(view, DType::f64);
  Moments found;
  for (const double x : copy.values<double>()) found.mean += x, found.largest = std::max(found.largest, std::abs(x));
  found.mean /= static_cast<double>(copy.count());
  for (const double x : copy.values<double>()) found.deviation += (x - found.mean) * (x - found.mean);
  found.deviation = std::sqrt(found.deviation / static_cast<double>(copy.count()));
  return found;
}

// A uniform distribution between ±bound: values come close to the bounds and never exceed them.
void expect_uniform(const ConstTensorView& view, double bound) {
  const Moments found = moments_of(view);
  EXPECT_LE(found.largest, bound);
  EXPECT_GT(found.largest, 0.99 * bound);
  EXPECT_NEAR(found.mean, 0.0, 0.02 * bound);
  EXPECT_NEAR(found.deviation, bound / std::sqrt(3.0), 0.02 * bound);
}

TEST(MultiHeadAttention, ParametersAreDrawnFromPyTorchsDistributions) {
  const MultiHeadAttention packed({.embed_size = 192, .heads = 4, .add_bias_kv = true}, 11);
  expect_uniform(parameter_of(packed, "in_proj_weight"), std::sqrt(6.0 / (192 + 576)));  // Xavier, of (3E, E)
  expect_uniform(parameter_of(packed, "out_proj.weight"), 1.0 / std::sqrt(192.0));       // as nn.Linear
  for (const char* name : {"in_proj_bias", "out_proj.bias"}) {
    EXPECT_EQ(moments_of(parameter_of(packed, name)).largest, 0.0);
  }
  const MultiHeadAttention separate({.embed_size = 192, .heads = 4, .key_size = 100, .value_size = 50}, 11);
  expect_uniform(parameter_of(separate, "q_proj_weight"), std::sqrt(6.0 / (192 + 192)));
  expect_uniform(parameter_of(separate, "k_proj_weight"), std::sqrt(6.0 / (192 + 100)));
  expect_uniform(parameter_of(separate, "v_proj_weight"), std::sqrt(6.0 / (192 + 50)));
}

TEST(MultiHeadAttention, LearnedKeysAreDrawnFromXaviersNormalDistribution) {
  const MultiHeadAttention layer(
      {.embed_size = 4096, .heads = 4, .head_size = 1024, .key_size = 1, .value_size = 1, .add_bias_kv = true}, 2);
  for (const char* name : {"bias_k", "bias_v"}) {
    const Moments found = moments_of(parameter_of(layer, name));
    EXPECT_NEAR(found.mean, 0.0, 0.001);
    EXPECT_NEAR(found.deviation, 1.0 / 64.0, 0.001);
    EXPECT_GT(found.largest, 3.0 / 64.0);
  }
}

TEST(MultiHeadAttention, ASeedAlwaysDrawsTheSame) {
  const auto weight = [](std::uint64_t seed) {
    return Tensor::copy_of(parameter_of(MultiHeadAttention(small(), seed), "in_proj_weight"));
  };
  EXPECT_TRUE(same_bits(weight(1), weight(1)));
  EXPECT_FALSE(same_bits(weight(1), weight(2)));
}

TEST(MultiHeadAttention, AParameterThatIsSetAgainCounts) {
  MultiHeadAttention layer = layer_with(small());
  const Tensor x = numbers("x", {1, 5, 24});
  const Tensor before = layer.forward(x).out;
  layer.set_parameter("out_proj.weight", Tensor({18, 40}));
  const Tensor after = layer.forward(x).out;
  EXPECT_FALSE(same_bits(after, before));
  EXPECT_TRUE(same_bits(after.view().select(0, 0).select(0, 0), parameter_of(layer, "out_proj.bias")));
}

// ---- Steps ----------------------------------------------------------------------------------------------------------

TEST(MultiHeadAttention, ItsStepsByHandGiveItsBits) {
  MultiHeadAttentionConfig config = small();
  config.rotary = RotaryOptions{.base = 500.0, .size = 6};
  const MultiHeadAttention layer = layer_with(config);
  const Tensor x = numbers("x", {2, 21, 24});
  Tensor qkv({42, 80}), combined({2, 21, 40}), out({42, 18});
  PackedMatrix(parameter_of(layer, "in_proj_weight"))
      .multiply(x.view().reshape({42, 24}), qkv, {.bias = parameter_of(layer, "in_proj_bias")});
  const TensorView all = qkv.view().reshape({2, 21, 80});
  const TensorView q = split_heads(all.slice(2, 0, 40), 4);
  const TensorView k = split_heads(all.slice(2, 40, 60), 2);
  const ConstTensorView v = split_heads(all.slice(2, 60, 80), 2);
  const Rotary rotary(10, *config.rotary);
  rotary.apply(q, 100);
  rotary.apply(k, 100);
  attention({.out = split_heads(combined.view(), 4)}, q, k, v, {.causal = true});
  PackedMatrix(parameter_of(layer, "out_proj.weight"))
      .multiply(combined.view().reshape({42, 40}), out, {.bias = parameter_of(layer, "out_proj.bias")});

  const Tensor found = layer.forward(x, {.attention = {.causal = true}, .position = 100}).out;
  EXPECT_TRUE(same_bits(found.view().reshape({42, 18}), out));
}

TEST(MultiHeadAttention, PackedSequencesAreBatchRowsEachFromItsFirstPosition) {
  MultiHeadAttentionConfig config = small();
  config.rotary = RotaryOptions{};
  const MultiHeadAttention layer = layer_with(config);
  const Tensor x = numbers("x", {1, 30, 24});
  const std::vector<std::int64_t> starts = {0, 7, 19, 30};
  LayerOptions options = causal();
  options.attention.packed = {starts, starts};
  const Tensor all = layer.forward(x, options).out;
  for (std::size_t n = 0; n + 1 < starts.size(); ++n) {
    const ConstTensorView one = x.view().slice(1, starts[n], starts[n + 1]);
    EXPECT_TRUE(same_bits(layer.forward(one, causal()).out, all.view().slice(1, starts[n], starts[n + 1])));
  }
}

TEST(MultiHeadAttention, AddedKeysComeLastAndAreSeenByEveryQuery) {
  MultiHeadAttentionConfig config = small();
  config.add_bias_kv = config.add_zero_attention = true;
  const MultiHeadAttention layer = layer_with(config);
  const Tensor x = numbers("x", {2, 6, 24});
  LayerOptions options = {.attention = {.causal = true}, .weights = ReturnWeights::per_head};
  options.attention.key_lengths = {6, 2};
  const LayerResult result = layer.forward(x, options);
  EXPECT_EQ(result.weights.shape(), Dims({2, 4, 6, 8}));
  for (std::int64_t i = 0; i < 6; ++i) {
    for (std::int64_t j = 0; j < 8; ++j) {
      const bool seen = j >= 6 || j <= i;
      EXPECT_EQ(result.weights.view().at<float>(0, 1, i, j) > 0.0F, seen) << i << " " << j;
      EXPECT_EQ(result.weights.view().at<float>(1, 1, i, j) > 0.0F, seen && (j >= 6 || j < 2)) << i << " " << j;
    }
  }
}

// ---- Dropout --------------------------------------------------------------------------------------------------------

TEST(MultiHeadAttention, DropoutIsForTrainingOnly) {
  MultiHeadAttentionConfig config = small();
  const Tensor plain = layer_with(config).forward(numbers("x", {2, 9, 24})).out;
  config.dropout = config.output_dropout = 0.4;
  const MultiHeadAttention layer = layer_with(config);
  EXPECT_TRUE(same_bits(layer.forward(numbers("x", {2, 9, 24})).out, plain));
  EXPECT_FALSE(same_bits(layer.forward(numbers("x", {2, 9, 24}), {.training = true}).out, plain));
}

TEST(MultiHeadAttention, DroppedWeightsAreThoseOfAttentionWithTheSameSeed) {
  MultiHeadAttentionConfig config = small();
  config.dropout = 0.4;
  const Tensor x = numbers("x", {2, 9, 24});
  LayerOptions options = {.weights = ReturnWeights::per_head, .training = true};
  options.attention.dropout.seed = 99;
  const LayerResult dropped = layer_with(config).forward(x, options);
  options.training = false;
  const LayerResult whole = layer_with(config).forward(x, options);
  int kept = 0;
  for (std::int64_t b = 0; b < 2; ++b) {
    for (std::int64_t h = 0; h < 4; ++h) {
      for (std::int64_t i = 0; i < 9; ++i) {
        for (std::int64_t j = 0; j < 9; ++j) {
          const auto word = philox4x32_10({static_cast<std::uint32_t>(b), static_cast<std::uint32_t>(h),
                                           static_cast<std::uint32_t>(i), static_cast<std::uint32_t>(j / 4)},
                                          philox_key(99))[static_cast<std::size_t>(j % 4)];
          const bool keep = word >= static_cast<std::uint32_t>(0.4 * 0x1p32);
          kept += keep ? 1 : 0;
          const float expected = keep ? whole.weights.view().at<float>(b, h, i, j) / 0.6F : 0.0F;
          EXPECT_NEAR(dropped.weights.view().at<float>(b, h, i, j), expected, 1e-6F);
        }
      }
    }
  }
  EXPECT_GT(kept, 300);
  EXPECT_LT(kept, 480);
}

TEST(MultiHeadAttention, OutputDropoutZeroesAndScales) {
  MultiHeadAttentionConfig config = small();
  config.output_dropout = 0.25;
  const Tensor x = numbers("x", {4, 50, 24});
  LayerOptions options = {.training = true};
  options.attention.dropout.seed = 4;
  const MultiHeadAttention layer = layer_with(config);
  const Tensor dropped = layer.forward(x, options).out;
  options.training = false;
  const Tensor whole = layer.forward(x, options).out;
  std::int64_t zeros = 0;
  for (std::size_t n = 0; n < whole.values<float>().size(); ++n) {
    const float value = dropped.values<float>()[n];
    zeros += value == 0.0F ? 1 : 0;
    const float kept = whole.values<float>()[n] / 0.75F;
    EXPECT_NEAR(value, value == 0.0F ? 0.0F : kept, 1e-6F);
  }
  EXPECT_NEAR(static_cast<double>(zeros) / static_cast<double>(whole.count()), 0.25, 0.03);

  // A micro-batch drops the same outputs as the whole call.
  options.training = true;
  options.attention.dropout.batch_start = 2;
  EXPECT_TRUE(same_bits(layer.forward(x.view().slice(0, 2, 4), options).out, dropped.view().slice(0, 2, 4)));
}

TEST(MultiHeadAttention, DroppingEverythingLeavesTheBiasOrNothing) {
  MultiHeadAttentionConfig config = small();
  config.dropout = 1.0;
  const MultiHeadAttention layer = layer_with(config);
  const Tensor x = numbers("x", {1, 3, 24});
  const Tensor out = layer.forward(x, {.training = true}).out;
  EXPECT_TRUE(same_bits(out.view().select(0, 0).select(0, 1), parameter_of(layer, "out_proj.bias")));
  config.output_dropout = 1.0;
  const Tensor nothing = layer_with(config).forward(x, {.training = true}).out;
  for (const float value : nothing.values<float>()) EXPECT_EQ(value, 0.0F);
}

// ---- Memory ---------------------------------------------------------------------------------------------------------

TEST(MultiHeadAttention, AWorkspaceIsReusedAndTheHeapLeftAlone) {
  MultiHeadAttentionConfig config = small();
  config.rotary = RotaryOptions{.max_positions = 64};
  const MultiHeadAttention layer = layer_with(config);
  const Tensor x = numbers("x", {2, 33, 24});
  Tensor out({2, 33, 18}), mean({2, 33, 33}), mask({33, 33});
  LayerWorkspace workspace;
  LayerOptions options = {.attention = {.causal = true}, .weights = ReturnWeights::mean, .workspace = &workspace};
  options.attention.masks = {Mask::add(mask)};
  const Tensor alone = layer.forward(x, {.attention = options.attention}).out;
  const auto call = [&] { layer.forward({out, mean}, x, {}, {}, options); };
  call();
  EXPECT_TRUE(same_bits(out, alone));
  const std::size_t bytes = workspace.bytes();
  EXPECT_GT(bytes, 0U);
  const std::int64_t before = allocation_count();
  for (int n = 0; n < 10; ++n) call();
  EXPECT_EQ(kCountsAllocations ? allocation_count() : before, before);
  EXPECT_EQ(workspace.bytes(), bytes);
  EXPECT_TRUE(same_bits(out, alone));
}

TEST(MultiHeadAttention, AWorkspaceCountsTheMemoryOfBackwardToo) {
  const MultiHeadAttention layer = layer_with(small());
  const Tensor x = numbers("x", {2, 33, 24});
  LayerWorkspace workspace;
  LayerActivations kept;
  const LayerOptions options = {.training = true, .workspace = &workspace, .keep = &kept};
  const LayerResult result = layer.forward(x, options);
  const std::size_t forward = workspace.bytes();
  Tensor dx(x.shape());
  layer.backward({.dquery = dx}, {.dout = result.out}, kept, x, {}, {}, options);
  EXPECT_GT(workspace.bytes(), forward);
}

TEST(MultiHeadAttention, SeveralThreadsMayCallOneLayer) {
  const MultiHeadAttention layer = layer_with(small());
  const Tensor x = numbers("x", {2, 40, 24});
  const Tensor wanted = layer_with(small()).forward(x).out;
  std::vector<Tensor> found(8);
  parallel_for(8, [&](std::int64_t n) { found[static_cast<std::size_t>(n)] = layer.forward(x).out; });
  for (const Tensor& out : found) EXPECT_TRUE(same_bits(out, wanted));
}

}  // namespace
}  // namespace rapt::test
