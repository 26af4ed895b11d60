// A call is validated once and planned once: attention once, each product once.
#include "core/call_counts.h"

#include <gtest/gtest.h>

#include "rapt/kv_cache.h"
#include "rapt/multi_head_attention.h"
#include "rapt/packed_matrix.h"
#include "rapt/rotary.h"
#include "support/random_tensor.h"

namespace rapt {
namespace {

template <class Call>
core::CallCounts counted(const Call& call) {
  core::CallCounts counts;
  core::call_counts = &counts;
  call();
  core::call_counts = nullptr;
  return counts;
}

TEST(CallCounts, ALayersForwardValidatesOnceAndPlansEachProductAndAttentionOnce) {
  const MultiHeadAttention layer({.embed_size = 64, .heads = 4, .batch_first = true, .rotary = RotaryOptions{}});
  const Tensor x = test::random({2, 5, 64}), memory = test::random({2, 7, 64}, DType::f32, 2);
  const core::CallCounts self = counted([&] { (void)layer.forward(x); });
  EXPECT_EQ(self.layer, 1);
  EXPECT_EQ(self.attention, 1);
  EXPECT_EQ(self.attention_plans, 1);
  EXPECT_EQ(self.product_plans, 2);  // q, k and v together; the output
  EXPECT_EQ(self.product + self.rotary + self.cache, 0);

  const core::CallCounts cross = counted([&] { (void)layer.forward(x, memory, {}, {}); });
  EXPECT_EQ(cross.layer, 1);
  EXPECT_EQ(cross.attention, 1);
  EXPECT_EQ(cross.attention_plans, 1);
  EXPECT_EQ(cross.product_plans, 3);  // q; k and v together; the output
  EXPECT_EQ(cross.product + cross.rotary + cross.cache, 0);
}

TEST(CallCounts, ADecodeStepValidatesOnceAndPlansEachProductAndAttentionOnce) {
  const MultiHeadAttention layer({.embed_size = 64, .heads = 4, .batch_first = true, .rotary = RotaryOptions{}});
  KvCache cache({.kv_heads = 4, .head_size = 16, .length = 8});
  cache.add();
  const Tensor x = test::random({1, 1, 64});
  LayerOptions options;
  options.cache = &cache;
  const core::CallCounts step = counted([&] { (void)layer.forward(x, options); });
  EXPECT_EQ(step.layer, 1);
  EXPECT_EQ(step.attention, 1);
  EXPECT_EQ(step.attention_plans, 1);
  EXPECT_EQ(step.product_plans, 2);
  EXPECT_EQ(step.product + step.rotary + step.cache, 0);
}

TEST(CallCounts, ALayersBackwardValidatesOnceAndPlansAttentionOnce) {
  const MultiHeadAttention layer({.embed_size = 32, .heads = 4, .batch_first = true});
  const Tensor x = test::random({2, 5, 32});
  LayerActivations kept;
  LayerOptions options;
  options.keep = &kept;
  const Tensor out = layer.forward(x, options).out;
  std::vector<Tensor> gradients = layer.zero_gradients();
  Tensor dx(x.shape());
  const core::CallCounts back = counted([&] {
    layer.backward({.dquery = dx, .parameters = gradients}, {.dout = out, .dweights = {}}, kept, x, {}, {}, options);
  });
  EXPECT_EQ(back.layer, 1);
  EXPECT_EQ(back.attention, 1);
  EXPECT_EQ(back.attention_plans, 1);
  EXPECT_EQ(back.product_plans, 4);  // two weights' gradients, and two inputs'
  EXPECT_EQ(back.product + back.rotary + back.cache, 0);
}

// Checks the counter: the public functions validate their arguments.
TEST(CallCounts, PublicFunctionsValidateOnce) {
  const Tensor q = test::random({1, 2, 3, 8});
  const core::CallCounts call = counted([&] { (void)attention(q, q, q, {}); });
  EXPECT_EQ(call.attention, 1);
  EXPECT_EQ(call.attention_plans, 1);
  const PackedMatrix matrix(test::random({4, 8}));
  Tensor y({2, 4});
  const Tensor x = test::random({2, 8});
  const core::CallCounts product = counted([&] { matrix.multiply(x, y); });
  EXPECT_EQ(product.product, 1);
  EXPECT_EQ(product.product_plans, 1);
  const core::CallCounts rotary = counted([&] { Rotary(8).apply(q.clone().view()); });
  EXPECT_EQ(rotary.rotary, 1);
}

}  // namespace
}  // namespace rapt
