// The operations of a small transformer and their gradients are compared with PyTorch's results, and must have the same
// bits however a call is split.
#include "rapt/layers.h"

#include <cmath>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "rapt/error.h"
#include "rapt/multi_head_attention.h"
#include "support/expect_error.h"
#include "support/random_tensor.h"
#include "support/safetensors.h"

namespace rapt::test {
namespace {

const Tensor& answer(const std::string& name) {
  static const Safetensors kFile = read_safetensors(RAPT_TEST_DATA "/training/steps.safetensors");
  return kFile.at(name);
}

// Runs in f32 and in f64; both are compared with PyTorch's f64.
class Steps : public testing::TestWithParam<DType> {
 protected:
  Tensor given(const std::string& name) const { return answer(name).to(GetParam()); }
  Tensor like(const std::string& name) const { return Tensor(answer(name).shape(), GetParam()); }

  void expect_answer(const Tensor& got, const std::string& name) const {
    const Tensor wide = got.to(DType::f64), &wanted = answer(name);
    ASSERT_EQ(wide.shape(), wanted.shape()) << name;
    double difference = 0.0, size = 0.0;
    for (std::size_t n = 0; n < wide.values<double>().size(); ++n) {
      difference += std::pow(wide.values<double>()[n] - wanted.values<double>()[n], 2);
      size += std::pow(wanted.values<double>()[n], 2);
    }
    EXPECT_LE(std::sqrt(difference), (GetParam() == DType::f64 ? 1e-13 : 2e-6) * std::sqrt(size)) << name;
  }
};

INSTANTIATE_TEST_SUITE_P(Of, Steps, testing::Values(DType::f32, DType::f64),
                         [](const auto& test) { return std::string(name_of(test.param)); });

TEST_P(Steps, LinearIsPyTorchs) {
  const Tensor x = given("linear/x"), weight = given("linear/weight"), dy = given("linear/dy");
  Tensor y = like("linear/y"), dx = like("linear/dx"), dweight = like("linear/dweight"), dbias = like("linear/dbias");
  linear(y, x, weight, given("linear/bias"));
  linear_backward({dx, dweight, dbias}, dy, x, weight);
  expect_answer(y, "linear/y");
  expect_answer(dx, "linear/dx");
  expect_answer(dweight, "linear/dweight");
  expect_answer(dbias, "linear/dbias");
}

TEST_P(Steps, LayerNormIsPyTorchs) {
  const Tensor x = given("layer_norm/x"), weight = given("layer_norm/weight"), dy = given("layer_norm/dy");
  Tensor y = like("layer_norm/y"), dweight = like("layer_norm/dweight"), dbias = like("layer_norm/dbias");
  layer_norm(y, x, weight, given("layer_norm/bias"));
  expect_answer(y, "layer_norm/y");
  Tensor in_place = dy.clone();  // dx overwrites dy
  layer_norm_backward({in_place, dweight, dbias}, in_place, x, weight);
  expect_answer(in_place, "layer_norm/dx");
  expect_answer(dweight, "layer_norm/dweight");
  expect_answer(dbias, "layer_norm/dbias");
  Tensor over_x = x.clone();
  layer_norm(over_x, over_x, weight, given("layer_norm/bias"));
  EXPECT_TRUE(same_bits(over_x, y));
}

TEST_P(Steps, GeluIsPyTorchs) {
  const Tensor x = given("gelu/x");
  Tensor y = like("gelu/y"), dx = given("gelu/dy");
  gelu(y, x);
  gelu_backward(dx, dx, x);
  expect_answer(y, "gelu/y");
  expect_answer(dx, "gelu/dx");
}

TEST_P(Steps, CrossEntropyIsPyTorchs) {
  std::vector<std::int32_t> targets;
  for (const double target : answer("cross_entropy/targets").values<double>()) {
    targets.push_back(static_cast<std::int32_t>(target));
  }
  Tensor logits = given("cross_entropy/logits");
  const double wanted = answer("cross_entropy/loss").values<double>()[0];
  EXPECT_NEAR(cross_entropy({}, logits, targets), wanted, GetParam() == DType::f64 ? 1e-14 : 1e-6);
  Tensor doubled = logits.clone();
  cross_entropy(logits, logits, targets);
  expect_answer(logits, "cross_entropy/dlogits");
  cross_entropy(doubled, doubled, targets, 2.0);
  for (std::int64_t n = 0; n < logits.count(); ++n) {
    const auto at = [&](const Tensor& of) { return of.to(DType::f64).values<double>()[static_cast<std::size_t>(n)]; };
    EXPECT_EQ(at(doubled), 2.0 * at(logits));
  }
}

TEST_P(Steps, AdamIsPyTorchsAdamW) {
  Tensor parameter = given("adamw/p0");
  Adam adam(parameter.shape(), GetParam()), resumed(parameter.shape(), GetParam());
  const AdamOptions options{.rate = 0.03, .beta1 = 0.8, .beta2 = 0.95, .epsilon = 1e-6, .weight_decay = 0.1};
  Tensor twin;
  for (int step = 1; step <= 6; ++step) {
    const Tensor gradient = given("adamw/g" + std::to_string(step));
    if (step == 4) {  // as from a checkpoint
      twin = parameter.clone();
      resumed.restore(adam.steps(), adam.first(), adam.second());
    }
    adam.step(parameter, gradient, options);
    if (step >= 4) resumed.step(twin, gradient, options);
    expect_answer(parameter, "adamw/p" + std::to_string(step));
  }
  EXPECT_TRUE(same_bits(parameter, twin));
}

TEST_P(Steps, ClippingIsPyTorchs) {
  std::vector<Tensor> gradients;
  gradients.push_back(given("clip/a"));
  gradients.push_back(given("clip/b"));
  const Tensor before = gradients[0].clone();
  const double norm = answer("clip/norm").values<double>()[0];
  EXPECT_NEAR(clip_gradients(gradients, norm * 1.01), norm, 1e-6);
  EXPECT_TRUE(same_bits(before, gradients[0])) << "what is short enough stays";
  EXPECT_NEAR(clip_gradients(gradients, 1.5), norm, 1e-6);
  // PyTorch adds 1e-6 to the norm before it divides.
  for (std::size_t n = 0; n < gradients.size(); ++n) {
    const Tensor got = gradients[n].to(DType::f64), &wanted = answer(n == 0 ? "clip/a_clipped" : "clip/b_clipped");
    for (std::size_t i = 0; i < got.values<double>().size(); ++i) {
      EXPECT_NEAR(got.values<double>()[i], wanted.values<double>()[i], 1e-6);
    }
  }
}

TEST_P(Steps, EmbeddingTakesRowsAndAddsThemBack) {
  const std::vector<std::int32_t> tokens = {2, 0, 2, 3};
  const Tensor table = random({5, 3}, GetParam());
  Tensor y({4, 3}, GetParam());
  embed(y, tokens, table);
  for (std::int64_t t = 0; t < 4; ++t) {
    EXPECT_TRUE(same_bits(y.view().select(0, t), table.view().select(0, tokens[static_cast<std::size_t>(t)])));
  }
  Tensor dtable({5, 3}, GetParam());
  embed_backward(dtable, y, tokens);
  const Tensor sums = dtable.to(DType::f64), wide = table.to(DType::f64);
  for (std::int64_t n = 0; n < 15; ++n) {
    const double times = n / 3 == 2 ? 2.0 : n / 3 == 0 || n / 3 == 3 ? 1.0 : 0.0;
    EXPECT_EQ(sums.values<double>()[static_cast<std::size_t>(n)],
              times * wide.values<double>()[static_cast<std::size_t>(n)]);
  }
}

TEST_P(Steps, AttentionLayersHavePyTorchsGradients) {
  struct Layer {
    std::string name;
    MultiHeadAttentionConfig config;
    std::vector<std::string> inputs;
  };
  MultiHeadAttentionConfig self;
  self.embed_size = 12, self.heads = 3, self.batch_first = true, self.dtype = GetParam();
  MultiHeadAttentionConfig cross = self;
  self.add_bias_kv = true;
  cross.key_size = 4, cross.value_size = 8;
  for (const auto& [name, config, inputs] : {Layer{"mha/", self, {"x"}}, Layer{"cross/", cross, {"q", "k", "v"}}}) {
    MultiHeadAttention layer(config);
    for (const NamedTensor& parameter : layer.parameters()) {
      layer.set_parameter(parameter.name, given(name + std::string(parameter.name)));
    }
    std::vector<Tensor> x, dx;
    for (const std::string& input : inputs) x.push_back(given(name + input)), dx.push_back(like(name + input));
    const auto view = [](auto& list, std::size_t n) {
      return n < list.size() ? list[n].view() : decltype(list[n].view())();
    };
    LayerActivations kept;
    LayerOptions options;
    options.attention.causal = inputs.size() == 1, options.weights = ReturnWeights::mean, options.keep = &kept;
    const LayerResult result = layer.forward(x[0], view(x, 1), view(x, 2), options);
    expect_answer(result.out, name + "out");
    expect_answer(result.weights, name + "weights");
    std::vector<Tensor> gradients = layer.zero_gradients();
    layer.backward({dx[0], view(dx, 1), view(dx, 2), gradients}, {given(name + "dout"), given(name + "dweights")}, kept,
                   x[0], view(x, 1), view(x, 2), options);
    for (std::size_t n = 0; n < inputs.size(); ++n) expect_answer(dx[n], name + "d" + inputs[n]);
    const std::vector<NamedTensor> parameters = layer.parameters();
    for (std::size_t n = 0; n < parameters.size(); ++n) {
      expect_answer(gradients[n], name + "d" + std::string(parameters[n].name));
    }
  }
}

// ---------------------------------------------------------------- bits

TEST(StepBits, OfMicroBatchesAreThoseOfOneBatch) {
  const Tensor x = random({40, 33}), dy = random({40, 29}, DType::f32, 2), weight = random({29, 33}, DType::f32, 3);
  const Tensor norm_weight = random({33}, DType::f32, 4), dnorm = random({40, 33}, DType::f32, 5);
  struct Gradients {
    Tensor dx{{40, 33}}, dweight{{29, 33}}, dbias{{29}}, dnormed{{40, 33}}, dscale{{33}}, dshift{{33}};
  };
  const auto in_parts = [&](std::int64_t rows) {
    Gradients to;
    for (std::int64_t t = 0; t < 40; t += rows) {
      const auto part = [&](auto& of) { return of.view().slice(0, t, t + rows); };
      linear_backward({part(to.dx), to.dweight, to.dbias}, part(dy), part(x), weight);
      layer_norm_backward({part(to.dnormed), to.dscale, to.dshift}, part(dnorm), part(x), norm_weight);
    }
    return to;
  };
  const Gradients whole = in_parts(40);
  for (const std::int64_t rows : {1, 5, 20}) {
    const Gradients parts = in_parts(rows);
    EXPECT_TRUE(same_bits(whole.dx, parts.dx) && same_bits(whole.dweight, parts.dweight)) << rows;
    EXPECT_TRUE(same_bits(whole.dbias, parts.dbias) && same_bits(whole.dnormed, parts.dnormed)) << rows;
    EXPECT_TRUE(same_bits(whole.dscale, parts.dscale) && same_bits(whole.dshift, parts.dshift)) << rows;
  }
}

TEST(StepBits, DoNotDependOnThreads) {
  const Tensor x = random({300, 700});
  const Tensor weight = random({700}, DType::f32, 2);
  std::vector<std::int32_t> targets(300, 5);
  const auto all = [&] {
    std::vector<Tensor> results;
    for (int n = 0; n < 4; ++n) results.emplace_back(Dims{300, 700});
    layer_norm(results[0], x, weight);
    gelu(results[1], x);
    gelu_backward(results[2], x, x);
    cross_entropy(results[3], x, targets);
    return results;
  };
  set_thread_count(1);
  const std::vector<Tensor> one = all();
  for (const int threads : {2, 3, 7}) {
    set_thread_count(threads);
    const std::vector<Tensor> more = all();
    for (std::size_t n = 0; n < one.size(); ++n)
      EXPECT_TRUE(same_bits(one[n], more[n])) << threads << " threads, " << n;
  }
  set_thread_count(0);
}

// ---------------------------------------------------------------- what is refused

TEST(StepErrors, SayWhatWouldWork) {
  Tensor x({2, 3}), y({2, 3}), other({3, 2}), wide({2, 3}, DType::f64), weight({3}), flat({3});
  const std::vector<std::int32_t> tokens = {0, 9}, one = {1};
  expect_error([&] { layer_norm(other, x, weight); }, "layer_norm: y has shape (3, 2); it must be that of x = (2, 3)");
  expect_error([&] { layer_norm(y, x, Tensor({2})); },
               "layer_norm: weight has shape (2,); it must be one number for each column = (3,)");
  expect_error([&] { layer_norm(wide, x, weight); }, "layer_norm: y is f64; all must be f32, or all f64");
  expect_error([&] { layer_norm(y, x, weight, {}, -1.0); }, "layer_norm: epsilon is -1; it must be at least 0");
  expect_error([&] { gelu(flat, x); }, "gelu: y has shape (3,); it must be a matrix");
  expect_error([&] { gelu(y, other.view().transpose(0, 1)); },
               "gelu: x has strides (1, 2); each row must be contiguous");
  expect_error(
      [&] {
        embed(y, tokens, Tensor({9, 3}));
      },
      "embed: tokens[1] is 9; it must be at least 0 and less than 9, the rows of table");
  expect_error(
      [&] {
        embed(y, one, Tensor({9, 3}));
      },
      "embed: y has shape (2, 3); it must be a row for each token = (1, 3)");
  expect_error([&] { cross_entropy({}, x, one); },
               "cross_entropy: there are 1 targets for 2 rows of logits; give one for each, or kNoTarget to ignore it");
  expect_error([&] { cross_entropy({}, x, tokens); },
               "cross_entropy: targets[1] is 9; it must be less than 3, the columns of logits, and at least 0, or "
               "kNoTarget");
  expect_error([&] { (void)clip_gradients({}, 0.0); }, "clip_gradients: largest is 0; it must be positive");
  expect_error([&] { Adam(x.shape()).step(other, x, {}); },
               "Adam::step: parameter has shape (3, 2); it must be that of the moments = (2, 3)");
}

}  // namespace
}  // namespace rapt::test
