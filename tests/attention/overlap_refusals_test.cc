// An output that overlaps an input or another output is rejected, for every pair of them, in every call.
#include <map>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "rapt/attention.h"
#include "rapt/layers.h"
#include "rapt/multi_head_attention.h"
#include "rapt/packed_matrix.h"
#include "support/expect_error.h"

namespace rapt::test {
namespace {

// The tensors of a call by name, each in its own memory, except that one may overlap another.
class Memory {
 public:
  Memory() = default;
  Memory(const std::string& moved, const std::string& to) : moved_(moved), to_(to) {}

  TensorView operator()(const std::string& name, const Dims& shape, DType dtype = DType::f32) {
    Tensor& slab = slabs_.try_emplace(name == moved_ ? to_ : name, Dims{1024}).first->second;
    return {slab.view().data(), dtype, shape};
  }

 private:
  std::string moved_, to_;
  std::map<std::string, Tensor> slabs_;
};

using Names = std::vector<std::string>;

template <class Call>
void expect_every_pair_is_refused(const std::string& function, Names others, const Names& outputs, const Call& call) {
  Memory good;
  EXPECT_EQ(refusal([&] { call(good); }), "");
  for (const std::string& output : outputs) {
    for (const std::string& other : others) {
      Memory memory(output, other);
      EXPECT_EQ(refusal([&] { call(memory); }),
                function + ": " + output + " overlaps " + other + "; it needs separate memory");
    }
    others.push_back(output);
  }
}

TEST(OverlapRefusals, OfAttention) {
  const auto call = [](Memory& memory, DType stored, AttentionOptions options) {
    options.masks = {Mask::add(memory("masks[0]", {3, 5}))};
    options.sinks = memory("sinks", {4});
    AttentionOutputs outputs{.out = memory("out", {2, 4, 3, 6}), .lse = memory("lse", {2, 4, 3})};
    outputs.captures = {{.to = memory("captures[0].to", {2, 4, 3, 5})}};
    attention(outputs, memory("query", {2, 4, 3, 8}), memory("key", {2, 2, 5, 8}, stored),
              memory("value", {2, 2, 5, 6}, stored), options);
  };
  const Names outputs = {"out", "lse", "captures[0].to"};
  expect_every_pair_is_refused("attention", {"query", "key", "value", "masks[0]", "sinks"}, outputs,
                               [&](Memory& memory) { call(memory, DType::f32, {}); });
  expect_every_pair_is_refused("attention",
                               {"query", "key", "value", "key_scales", "value_scales", "masks[0]", "sinks"}, outputs,
                               [&](Memory& memory) {
                                 AttentionOptions options;
                                 options.key_scales = memory("key_scales", {2, 2, 5});
                                 options.value_scales = memory("value_scales", {2, 2, 5});
                                 call(memory, DType::i8, options);
                               });
}

TEST(OverlapRefusals, OfItsGradients) {
  expect_every_pair_is_refused(
      "attention_backward",
      {"query", "key", "value", "masks[0]", "sinks", "dout", "dlse", "out", "lse", "dweights[0].from"},
      {"dquery", "dkey", "dvalue", "dsinks", "dmasks[0].to"}, [](Memory& memory) {
        AttentionOptions options;
        options.masks = {Mask::add(memory("masks[0]", {3, 5}))};
        options.sinks = memory("sinks", {4});
        AttentionUpstream upstream{.dout = memory("dout", {2, 4, 3, 6}), .dlse = memory("dlse", {2, 4, 3})};
        upstream.out = memory("out", {2, 4, 3, 6}), upstream.lse = memory("lse", {2, 4, 3});
        upstream.dweights = {{.from = memory("dweights[0].from", {2, 4, 3, 5})}};
        AttentionGradients gradients{.dquery = memory("dquery", {2, 4, 3, 8}),
                                     .dkey = memory("dkey", {2, 2, 5, 8}),
                                     .dvalue = memory("dvalue", {2, 2, 5, 6}),
                                     .dsinks = memory("dsinks", {4})};
        gradients.dmasks = {{0, memory("dmasks[0].to", {3, 5})}};
        attention_backward(gradients, upstream, memory("query", {2, 4, 3, 8}), memory("key", {2, 2, 5, 8}),
                           memory("value", {2, 2, 5, 6}), options);
      });
}

// A layer with every tensor that a call can have.
struct LayerTensors {
  explicit LayerTensors(Memory& memory)
      : query(memory("query", {2, 3, 8})), key(memory("key", {2, 5, 8})), value(memory("value", {2, 5, 8})) {
    options.weights = ReturnWeights::mean;
    options.attention.masks = {Mask::add(memory("attention.masks[0]", {3, 5}))};
    options.attention.sinks = memory("attention.sinks", {4});
  }

  MultiHeadAttention layer{{.embed_size = 8, .heads = 4, .kv_heads = 2, .batch_first = true}};
  ConstTensorView query, key, value;
  LayerOptions options;
};

TEST(OverlapRefusals, OfALayer) {
  expect_every_pair_is_refused(
      "MultiHeadAttention::forward", {"query", "key", "value", "attention.masks[0]", "attention.sinks"},
      {"out", "weights", "lse", "captures[0].to"}, [](Memory& memory) {
        const LayerTensors tensors(memory);
        LayerOutputs outputs{memory("out", {2, 3, 8}), memory("weights", {2, 3, 5}), memory("lse", {2, 4, 3})};
        outputs.captures = {{.to = memory("captures[0].to", {2, 4, 3, 5})}};
        tensors.layer.forward(outputs, tensors.query, tensors.key, tensors.value, tensors.options);
      });
}

TEST(OverlapRefusals, OfALayersGradients) {
  std::vector<Tensor> parameters;
  const auto call = [&](Memory& memory) {
    LayerTensors tensors(memory);
    if (parameters.empty()) parameters = tensors.layer.zero_gradients();
    LayerActivations kept;
    tensors.options.keep = &kept;
    (void)tensors.layer.forward(tensors.query, tensors.key, tensors.value, tensors.options);
    tensors.options.keep = nullptr;
    LayerGradients gradients{.dquery = memory("dquery", {2, 3, 8}),
                             .dkey = memory("dkey", {2, 5, 8}),
                             .dvalue = memory("dvalue", {2, 5, 8})};
    gradients.parameters = parameters;
    gradients.dsinks = memory("dsinks", {4});
    gradients.dmasks = {{0, memory("dmasks[0].to", {3, 5})}};
    tensors.layer.backward(gradients, {.dout = memory("dout", {2, 3, 8}), .dweights = memory("dweights", {2, 3, 5})},
                           kept, tensors.query, tensors.key, tensors.value, tensors.options);
  };
  expect_every_pair_is_refused("MultiHeadAttention::backward",
                               {"query", "key", "value", "attention.masks[0]", "attention.sinks", "dout", "dweights"},
                               {"dquery", "dkey", "dvalue", "dsinks", "dmasks[0].to"}, call);

  // The gradient of in_proj_weight is a separate tensor, so the input is placed in it.
  const MultiHeadAttention layer({.embed_size = 8, .heads = 4, .batch_first = true});
  parameters = layer.zero_gradients();
  const ConstTensorView x(parameters[0].view().data(), DType::f32, {2, 3, 8});
  LayerActivations kept;
  (void)layer.forward(x, {.keep = &kept});
  LayerGradients gradients;
  gradients.parameters = parameters;
  const Tensor dout({2, 3, 8});
  expect_error([&] { layer.backward(gradients, {.dout = dout}, kept, x, {}, {}, {}); },
               "MultiHeadAttention::backward: parameters[0] overlaps query; it needs separate memory");
}

// Errors of attention in a layer's backward are reported before any gradient is changed.
TEST(OverlapRefusals, OfALayersGradientsChangeNothing) {
  Memory memory;
  LayerTensors tensors(memory);
  LayerActivations kept;
  tensors.options.keep = &kept;
  (void)tensors.layer.forward(tensors.query, tensors.key, tensors.value, tensors.options);
  std::vector<Tensor> parameters = tensors.layer.zero_gradients();
  LayerGradients gradients;
  gradients.parameters = parameters;
  gradients.dmasks = {{0, memory("dmask of a wrong shape", {5, 3})}};
  Tensor dout({2, 3, 8});
  for (float& x : dout.values<float>()) x = 1.0F;
  EXPECT_NE(refusal([&] {
              tensors.layer.backward(gradients, {.dout = dout}, kept, tensors.query, tensors.key, tensors.value,
                                     tensors.options);
            }),
            "");
  for (const Tensor& each : parameters) {
    for (const float x : each.values<float>()) ASSERT_EQ(x, 0.0F);
  }
}

TEST(OverlapRefusals, OfAPackedMatrix) {
  expect_every_pair_is_refused("PackedMatrix::multiply", {"x", "bias"}, {"y"}, [](Memory& memory) {
    const PackedMatrix matrix(memory("weight", {5, 4}));
    matrix.multiply(memory("x", {3, 4}), memory("y", {3, 5}), {.bias = memory("bias", {5})});
  });
}

TEST(OverlapRefusals, OfTheOtherLayers) {
  expect_every_pair_is_refused(
      "linear_backward", {"dy", "x", "weight"}, {"dx", "dweight", "dbias"}, [](Memory& memory) {
        linear_backward(
            {.dx = memory("dx", {3, 4}), .dweight = memory("dweight", {5, 4}), .dbias = memory("dbias", {5})},
            memory("dy", {3, 5}), memory("x", {3, 4}), memory("weight", {5, 4}));
      });
  expect_every_pair_is_refused("layer_norm", {"weight", "bias"}, {"y"}, [](Memory& memory) {
    layer_norm(memory("y", {3, 4}), memory("x", {3, 4}), memory("weight", {4}), memory("bias", {4}));
  });
  expect_every_pair_is_refused("layer_norm_backward", {"x", "weight"}, {"dx", "dweight", "dbias"}, [](Memory& memory) {
    layer_norm_backward({.dx = memory("dx", {3, 4}), .dweight = memory("dweight", {4}), .dbias = memory("dbias", {4})},
                        memory("dy", {3, 4}), memory("x", {3, 4}), memory("weight", {4}));
  });
  expect_every_pair_is_refused("gelu_backward", {"x"}, {"dx"}, [](Memory& memory) {
    gelu_backward(memory("dx", {3, 4}), memory("dy", {3, 4}), memory("x", {3, 4}));
  });
  const std::vector<std::int32_t> tokens = {2, 0, 1};
  expect_every_pair_is_refused("embed", {"table"}, {"y"}, [&](Memory& memory) {
    embed(memory("y", {3, 4}), tokens, memory("table", {3, 4}));
  });
  expect_every_pair_is_refused("embed_backward", {"dy"}, {"dtable"}, [&](Memory& memory) {
    embed_backward(memory("dtable", {3, 4}), memory("dy", {3, 4}), tokens);
  });
}

// In-place calls are allowed where a header says so; an overlap shifted by one row is not.
TEST(OverlapRefusals, OfWorkInPlaceOnlyWhereItIsShifted) {
  Tensor all({4, 4});
  const Tensor weight({4}), up({3, 4});
  const std::vector<std::int32_t> targets = {2, 0, 1};
  const TensorView x = all.view().slice(0, 0, 3), shifted = all.view().slice(0, 1, 4);
  const auto end = std::string("; it needs separate memory");
  layer_norm(x, x, weight);
  EXPECT_EQ(refusal([&] { layer_norm(shifted, x, weight); }), "layer_norm: y overlaps x" + end);
  layer_norm_backward({.dx = x}, x, up, weight);
  EXPECT_EQ(refusal([&] { layer_norm_backward({.dx = shifted}, x, up, weight); }),
            "layer_norm_backward: dx overlaps dy" + end);
  gelu(x, x);
  EXPECT_EQ(refusal([&] { gelu(shifted, x); }), "gelu: y overlaps x" + end);
  gelu_backward(x, x, up);
  EXPECT_EQ(refusal([&] { gelu_backward(shifted, x, up); }), "gelu_backward: dx overlaps dy" + end);
  (void)cross_entropy(x, x, targets);
  EXPECT_EQ(refusal([&] { (void)cross_entropy(shifted, x, targets); }), "cross_entropy: dlogits overlaps logits" + end);
}

}  // namespace
}  // namespace rapt::test
