// Tests every error of a layer and its exact message; a failing call must write nothing.
#include <set>
#include <string>

#include <gtest/gtest.h>

#include "rapt/multi_head_attention.h"
#include "support/bad_layers.h"
#include "support/expect_error.h"

namespace rapt::test {
namespace {

template <class Attempt>
void expect_refused(const char* expected, const Attempt& attempt) {
  expect_words(expected, refusal(attempt));
}

class BadLayer : public testing::TestWithParam<BadConfig> {};
INSTANTIATE_TEST_SUITE_P(Configs, BadLayer, testing::ValuesIn(bad_configs()),
                         [](const auto& instance) { return std::string(instance.param.name); });

TEST_P(BadLayer, IsRefusedWithItsOwnMessage) {
  MultiHeadAttentionConfig config = good_config();
  GetParam().spoil(config);
  expect_refused(GetParam().message, [&] { const MultiHeadAttention layer(config); });
}

class BadForwardOfLayer : public testing::TestWithParam<BadLayerCall> {};
INSTANTIATE_TEST_SUITE_P(Calls, BadForwardOfLayer, testing::ValuesIn(bad_layer_calls()),
                         [](const auto& instance) { return std::string(instance.param.name); });

TEST_P(BadForwardOfLayer, IsRefusedWithItsOwnMessage) {
  expect_refusal(GetParam(), [](LayerCall& call) {
    const MultiHeadAttention layer(call.config);
    return refusal([&] { layer.forward(call.outputs, call.query, call.key, call.value, call.options); });
  });
}

TEST(BadLayers, AreManyAndTheGoodOneIsGood) {
  std::set<std::string> messages;
  for (const BadConfig& bad : bad_configs()) messages.insert(bad.message);
  for (const BadLayerCall& bad : bad_layer_calls()) messages.insert(bad.message);
  EXPECT_GE(messages.size(), 60U);
  LayerCall call;
  MultiHeadAttention(call.config).forward(call.outputs, call.query, call.key, call.value, call.options);
}

TEST(BadLayers, RefuseParametersTheyDoNotHave) {
  MultiHeadAttention layer({.embed_size = 8, .heads = 4});
  expect_refused(
      "MultiHeadAttention::set_parameter: there is no parameter \"W_q\"; this layer has in_proj_weight, in_proj_bias, "
      "out_proj.weight, out_proj.bias",
      [&] {
        layer.set_parameter("W_q", Tensor({8, 8}));
      });
  expect_refused(
      "MultiHeadAttention::set_parameter: in_proj_weight has shape (8, 8); it must be that of the layer = (24, 8)",
      [&] {
        layer.set_parameter("in_proj_weight", Tensor({8, 8}));
      });
  expect_refused("MultiHeadAttention::set_parameter: in_proj_bias is bool; it must be f32, bf16, f16 or f64",
                 [&] { layer.set_parameter("in_proj_bias", Tensor({24}, DType::boolean)); });
  expect_refused("MultiHeadAttention::slice: this layer is slice 1 of 2 already; slice the whole layer",
                 [&] { layer.slice(1, 2).slice(0, 2); });
}

TEST(BadLayers, RefuseMasksOfAnotherRank) {
  const Tensor plane({3, 5}), planes({6, 3, 5});
  expect_refused("mask_of_batch: mask has shape (3, 5); it must be (B, Lq, Lk)", [&] { mask_of_batch(plane); });
  expect_refused("mask_of_heads: mask has shape (3, 5); it must be (B·Hq, Lq, Lk)", [&] { mask_of_heads(plane, 3); });
  expect_refused("mask_of_heads: mask has 6 planes, which is not a multiple of 4 heads; it must be (B·Hq, Lq, Lk)",
                 [&] { mask_of_heads(planes, 4); });
  expect_refused("mask_of_keys: mask has shape (6, 3, 5); it must be (B, Lk)", [&] { mask_of_keys(planes); });
}

}  // namespace
}  // namespace rapt::test
