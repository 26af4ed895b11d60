// The layer's lse and scores are those of attention on the q, k and v that it projects.
#include <cmath>
#include <vector>

#include <gtest/gtest.h>

#include "rapt/multi_head_attention.h"
#include "rapt/packed_matrix.h"
#include "support/module_case.h"
#include "support/same_bits.h"

namespace rapt::test {
namespace {

constexpr std::int64_t kHeads = 4, kKvHeads = 2, kSize = 6, kTokens = 9, kBatch = 2, kEmbed = 24;

MultiHeadAttentionConfig config_of(DType dtype = DType::f32) {
  return {.embed_size = kEmbed,
          .heads = kHeads,
          .kv_heads = kKvHeads,
          .head_size = kSize,
          .batch_first = true,
          .dtype = dtype};
}

Tensor tokens(DType dtype = DType::f32) { return drawn("x", {kBatch, kTokens, kEmbed}).to(dtype); }

LayerOptions capped_and_causal() { return {.attention = {.softcap = 2.0, .causal = true}}; }

// Memory for the lse and three captures of a call.
struct Written {
  explicit Written(DType dtype = DType::f32, std::int64_t keys = kTokens)
      : lse({kBatch, kHeads, kTokens}, dtype),
        raw({kBatch, kHeads, kTokens, keys}, dtype),
        masked({kBatch, 2, 1, keys}, dtype),
        mean({kBatch, kTokens, keys}, dtype) {}

  std::vector<Capture> captures() {
    return {{Stage::raw, raw},
            {Stage::masked, masked, {.heads = {3, 0}, .queries = {5}}},
            {Stage::weights, mean, {.mean_over_heads = true}}};
  }

  Tensor lse, raw, masked, mean;
};

// q, k and v: x projected with the layer's weights and split into heads.
struct Projected {
  explicit Projected(const MultiHeadAttention& layer, const Tensor& x)
      : qkv({kBatch * kTokens, (kHeads + 2 * kKvHeads) * kSize}, x.dtype()) {
    PackedMatrix(layer.parameters()[0].value)
        .multiply(x.view().reshape({kBatch * kTokens, kEmbed}), qkv, {.bias = layer.parameters()[1].value});
    const ConstTensorView all = qkv.view().reshape({kBatch, kTokens, (kHeads + 2 * kKvHeads) * kSize});
    const std::int64_t k_at = kHeads * kSize, v_at = k_at + kKvHeads * kSize;
    q = split_heads(all.slice(2, 0, k_at), kHeads);
    k = split_heads(all.slice(2, k_at, v_at), kKvHeads);
    v = split_heads(all.slice(2, v_at, v_at + kKvHeads * kSize), kKvHeads);
  }

  Tensor qkv;
  ConstTensorView q, k, v;
};

TEST(ScoresOfALayer, AreThoseOfAttentionOnWhatItProjects) {
  for (const bool keep : {false, true}) {  // backward also requires the lse
    const MultiHeadAttention layer(config_of(), 3);
    const Tensor x = tokens();
    Tensor out({kBatch, kTokens, kEmbed}), weights({kBatch, kHeads, kTokens, kTokens});
    Written found, wanted;
    LayerActivations activations;
    LayerOptions options = capped_and_causal();
    options.weights = ReturnWeights::per_head;
    if (keep) options.keep = &activations;
    layer.forward({.out = out, .weights = weights, .lse = found.lse, .captures = found.captures()}, x, {}, {}, options);

    const Projected projected(layer, x);
    Tensor heads({kBatch, kHeads, kTokens, kSize}), all_weights({kBatch, kHeads, kTokens, kTokens});
    std::vector<Capture> captures = wanted.captures();
    captures.push_back({Stage::dropped_weights, all_weights});
    attention({.out = heads, .lse = wanted.lse, .captures = captures}, projected.q, projected.k, projected.v,
              options.attention);
    EXPECT_TRUE(same_bits(found.lse, wanted.lse));
    EXPECT_TRUE(same_bits(found.raw, wanted.raw));
    EXPECT_TRUE(same_bits(found.masked, wanted.masked));
    EXPECT_TRUE(same_bits(found.mean, wanted.mean));
    EXPECT_TRUE(same_bits(weights, all_weights));
    EXPECT_TRUE(same_bits(out, layer.forward(x, capped_and_causal()).out)) << "looking changes nothing";
  }
}

TEST(ScoresOfALayer, AreOfTheLayersOwnWideType) {
  for (const auto& [parameters, wide] : {std::pair(DType::bf16, DType::f32), std::pair(DType::f64, DType::f64)}) {
    const MultiHeadAttention layer(config_of(parameters), 3);
    const Tensor x = tokens(parameters);
    Tensor out({kBatch, kTokens, kEmbed}, parameters);
    Written found(wide);
    layer.forward({.out = out, .lse = found.lse, .captures = found.captures()}, x, {}, {}, capped_and_causal());
    EXPECT_TRUE(std::isinf(wide == DType::f64 ? found.masked.view().at<double>(0, 0, 0, 6)
                                              : found.masked.view().at<float>(0, 0, 0, 6)));
  }
}

TEST(ScoresOfALayer, DoWithoutABatchDimension) {
  const MultiHeadAttention layer(config_of(), 3);
  const Tensor x = tokens();
  Tensor out({kBatch, kTokens, kEmbed}), one_out({kTokens, kEmbed});
  Written all;
  Tensor lse({kHeads, kTokens}), raw({kHeads, kTokens, kTokens}), mean({kTokens, kTokens});
  layer.forward({.out = out, .lse = all.lse, .captures = all.captures()}, x, {}, {}, capped_and_causal());
  layer.forward(
      {.out = one_out, .lse = lse, .captures = {{Stage::raw, raw}, {Stage::weights, mean, {.mean_over_heads = true}}}},
      x.view().select(0, 1), {}, {}, capped_and_causal());
  EXPECT_TRUE(same_bits(lse, all.lse.view().select(0, 1)));
  EXPECT_TRUE(same_bits(raw, all.raw.view().select(0, 1)));
  EXPECT_TRUE(same_bits(mean, all.mean.view().select(0, 1)));
}

TEST(ScoresOfALayer, HaveTheAddedKeysLast) {
  MultiHeadAttentionConfig config = config_of();
  config.add_zero_attention = true;
  const MultiHeadAttention layer(config, 3);
  Tensor out({kBatch, kTokens, kEmbed});
  Written found(DType::f32, kTokens + 1);
  layer.forward({.out = out, .lse = found.lse, .captures = found.captures()}, tokens(), {}, {}, capped_and_causal());
  for (std::int64_t i = 0; i < kTokens; ++i) {
    EXPECT_EQ(found.raw.view().at<float>(1, 2, i, kTokens), 0.0F) << "q times a key of zeros";
    EXPECT_NE(found.raw.view().at<float>(1, 2, i, 0), 0.0F);
    EXPECT_GT(found.mean.view().at<float>(1, i, kTokens), 0.0F) << "every query sees it";
  }
}

TEST(ScoresOfALayer, CountTheCachedKeys) {
  const MultiHeadAttention layer(config_of(), 3);
  const Tensor x = tokens();
  Tensor out({kBatch, kTokens, kEmbed}), last_out({kBatch, 1, kEmbed});
  Written all;
  layer.forward({.out = out, .lse = all.lse, .captures = all.captures()}, x, {}, {}, capped_and_causal());

  KvCache cache({.kv_heads = kKvHeads, .head_size = kSize, .sequences = kBatch, .length = kTokens});
  LayerOptions options = capped_and_causal();
  for (std::int64_t b = 0; b < kBatch; ++b) EXPECT_EQ(cache.add(), b);
  options.cache = &cache;
  layer.forward(x.view().slice(1, 0, kTokens - 1), options);
  Tensor lse({kBatch, kHeads, 1}), raw({kBatch, kHeads, 1, kTokens});
  layer.forward({.out = last_out, .lse = lse, .captures = {{Stage::raw, raw}}}, x.view().slice(1, kTokens - 1, kTokens),
                {}, {}, options);
  EXPECT_TRUE(same_bits(lse, all.lse.view().slice(2, kTokens - 1, kTokens)));
  EXPECT_TRUE(same_bits(raw, all.raw.view().slice(2, kTokens - 1, kTokens)));
}

}  // namespace
}  // namespace rapt::test
