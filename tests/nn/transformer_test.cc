// The small transformer: gradients agree with finite differences, and every code path gives the same bits.
#include "rapt/transformer.h"

#include <cmath>
#include <cstdio>
#include <filesystem>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "cases/case.h"
#include "rapt/error.h"
#include "rapt/safetensors.h"
#include "support/expect_error.h"
#include "support/random_tensor.h"

namespace rapt::test {
namespace {

std::vector<std::int32_t> some_tokens(std::size_t count, std::int64_t vocabulary, std::uint32_t seed) {
  cases::Stream stream(seed);
  std::vector<std::int32_t> tokens(count);
  for (std::int32_t& token : tokens)
    token = static_cast<std::int32_t>(stream.uniform() * static_cast<double>(vocabulary));
  return tokens;
}

struct Data {
  explicit Data(const TransformerConfig& config, std::int64_t batch, std::int64_t length)
      : tokens(some_tokens(static_cast<std::size_t>(batch * length), config.vocabulary, 1)),
        targets(some_tokens(tokens.size(), config.vocabulary, 2)) {
    for (std::size_t n = 0; n < targets.size(); n += 5) targets[n] = kNoTarget;
  }
  std::vector<std::int32_t> tokens, targets;
};

class TransformerGradients : public testing::TestWithParam<TransformerConfig> {};

TEST_P(TransformerGradients, AreTheDifferencesOfTheLoss) {
  TransformerConfig config = GetParam();
  config.dtype = DType::f64;
  const Data data(config, 2, 5);
  Transformer model(config, 3);
  const auto loss = [&](Transformer& of) { return of.add_gradients(data.tokens, data.targets, 2, 1.0, 7); };
  loss(model);
  const std::vector<NamedTensor> gradients = model.gradients(), parameters = model.parameters();
  ASSERT_EQ(gradients.size(), parameters.size());
  Transformer changed(config, 3);
  for (std::size_t p = 0; p < parameters.size(); ++p) {
    ASSERT_EQ(gradients[p].name, parameters[p].name);
    Tensor value = Tensor::copy_of(parameters[p].value);
    const Tensor gradient = Tensor::copy_of(gradients[p].value);
    for (std::int64_t n = 0; n < value.count(); n += std::max<std::int64_t>(1, value.count() / 7)) {
      double& x = value.values<double>()[static_cast<std::size_t>(n)];
      const double at = x;
      const auto loss_at = [&](double place) {
        x = place;
        changed.set_parameter(parameters[p].name, value);
        return loss(changed);
      };
      const double difference = (loss_at(at + 1e-5) - loss_at(at - 1e-5)) / 2e-5;
      loss_at(at);
      EXPECT_NEAR(gradient.values<double>()[static_cast<std::size_t>(n)], difference, 1e-8)
          << parameters[p].name << "[" << n << "]";
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    Of, TransformerGradients,
    testing::Values(
        TransformerConfig{.vocabulary = 9, .context = 8, .width = 6, .layers = 2, .heads = 1},
        TransformerConfig{.vocabulary = 7, .context = 5, .width = 8, .layers = 1, .heads = 2, .hidden = 12},
        TransformerConfig{
            .vocabulary = 7, .context = 6, .width = 8, .layers = 2, .heads = 4, .hidden = 5, .dropout = 0.2},
        TransformerConfig{.vocabulary = 7, .context = 5, .width = 8, .layers = 2, .heads = 2, .causal = false}),
    [](const auto& test) { return "Case" + std::to_string(test.index); });

TransformerConfig standard() {
  return {.vocabulary = 20, .context = 40, .width = 32, .layers = 2, .heads = 2, .hidden = 48, .dropout = 0.1};
}

bool same_parameters(const Transformer& a, const Transformer& b) {
  const std::vector<NamedTensor> first = a.parameters(), second = b.parameters();
  for (std::size_t n = 0; n < first.size(); ++n) {
    if (!same_bits(first[n].value, second[n].value)) return false;
  }
  return true;
}

TEST(TransformerBits, MicroBatchesTrainAsOneBatch) {
  const Data data(standard(), 8, 24);
  Transformer whole(standard(), 1), parts(standard(), 1);
  const auto targets_in = [&](std::size_t first, std::size_t count) {
    std::int64_t counted = 0;
    for (std::size_t n = first; n < first + count; ++n) counted += data.targets[n] != kNoTarget;
    return static_cast<double>(counted);
  };
  const std::size_t row = 24;
  for (int step = 0; step < 3; ++step) {
    const double loss = whole.add_gradients(data.tokens, data.targets, 8, 1.0, 5);
    double sum = 0.0;
    for (std::size_t b = 0; b < 8; ++b) {
      // Each target has the same weight as in the whole batch.
      const double share = targets_in(b * row, row) / targets_in(0, 8 * row);
      sum += share * parts.add_gradients(std::span(data.tokens).subspan(b * row, row),
                                         std::span(data.targets).subspan(b * row, row), 1, share, 5,
                                         static_cast<std::int64_t>(b));
    }
    EXPECT_NEAR(loss, sum, 1e-12 * std::abs(loss) + 1e-9);
    const std::vector<NamedTensor> a = whole.gradients(), b = parts.gradients();
    for (std::size_t n = 0; n < a.size(); ++n) {
      const Tensor first = Tensor::copy_of(a[n].value, DType::f64), second = Tensor::copy_of(b[n].value, DType::f64);
      double size = 0.0, difference = 0.0;
      for (std::size_t i = 0; i < first.values<double>().size(); ++i) {
        size += std::abs(first.values<double>()[i]);
        difference += std::abs(first.values<double>()[i] - second.values<double>()[i]);
      }
      // The two models round dlogits from slightly different doubles, so the last bit may differ. Nothing else differs:
      // both sum in the same order.
      EXPECT_LE(difference, 1e-6 * size) << a[n].name;
    }
    whole.step({}, 1.0);
    parts.step({}, 1.0);
  }
}

// If every row has the same number of targets and both this number and the number of rows are powers of two, shares are
// exact, dlogits have the same bits, and every sum continues from the previous row.
TEST(TransformerBits, OfGradientsOfMicroBatchesAreThoseOfOneBatch) {
  const std::int64_t length = 20;
  Data data(standard(), 8, length);
  for (std::size_t n = 0; n < data.targets.size(); ++n) {
    data.targets[n] = n % 20 < 16 ? static_cast<std::int32_t>((7 * n) % 20) : kNoTarget;
  }
  const auto gradients_by = [&](std::int64_t rows, int threads) {
    set_thread_count(threads);
    Transformer model(standard(), 1);
    for (std::int64_t b = 0; b < 8; b += rows) {
      const auto part = [&](const std::vector<std::int32_t>& all) {
        return std::span(all).subspan(static_cast<std::size_t>(b * length), static_cast<std::size_t>(rows * length));
      };
      model.add_gradients(part(data.tokens), part(data.targets), rows, static_cast<double>(rows) / 8.0, 5, b);
    }
    set_thread_count(0);
    return model;
  };
  const Transformer whole = gradients_by(8, 1);
  for (const auto& [rows, threads] : {std::pair(1, 1), std::pair(1, 7), std::pair(2, 2), std::pair(4, 3)}) {
    const Transformer parts = gradients_by(rows, threads);
    const std::vector<NamedTensor> a = whole.gradients(), b = parts.gradients();
    for (std::size_t n = 0; n < a.size(); ++n) {
      EXPECT_TRUE(same_bits(a[n].value, b[n].value)) << a[n].name << ", " << rows << " rows, " << threads << " threads";
    }
  }
}

TEST(TransformerBits, DoNotDependOnThreads) {
  const Data data(standard(), 4, 30);
  const auto trained = [&](int threads) {
    set_thread_count(threads);
    Transformer model(standard(), 1);
    for (int step = 0; step < 3; ++step) {
      model.add_gradients(data.tokens, data.targets, 4, 1.0, static_cast<std::uint64_t>(step));
      model.step({.rate = 0.01}, 1.0);
    }
    return model;
  };
  const Transformer one = trained(1);
  for (const int threads : {2, 3, 7}) EXPECT_TRUE(same_parameters(one, trained(threads))) << threads;
  set_thread_count(0);
}

TEST(TransformerCacheTest, GivesTheBitsOfAllTokensAtOnce) {
  const Transformer model(standard(), 4);
  const std::vector<std::int32_t> tokens = some_tokens(40, 20, 3);
  const Tensor all = model.logits(tokens);
  TransformerCache cache;
  for (std::size_t first = 0; first < tokens.size();) {
    const std::size_t count = first == 0 ? 11 : first < 20 ? 1 : 4;
    const std::size_t last = std::min(tokens.size(), first + count);
    const Tensor some = model.logits(std::span(tokens).subspan(first, last - first), cache);
    const auto begin = static_cast<std::int64_t>(first), end = static_cast<std::int64_t>(last);
    EXPECT_TRUE(same_bits(some, all.view().slice(1, begin, end))) << first;
    EXPECT_EQ(cache.length(), end);
    first = last;
  }
  EXPECT_THROW((void)model.logits(std::vector<std::int32_t>{1}, cache), Error);
}

TEST(TransformerFiles, ResumeTrainingBitForBit) {
  const std::string path = testing::TempDir() + "rapt_transformer_test.safetensors";
  const Data data(standard(), 4, 30);
  const auto train = [&](Transformer& model, int first, int last) {
    for (int step = first; step < last; ++step) {
      model.add_gradients(data.tokens, data.targets, 4, 1.0, static_cast<std::uint64_t>(step));
      model.step({.rate = 0.01, .weight_decay = 0.1}, 1.0);
    }
  };
  Transformer unbroken(standard(), 1), broken(standard(), 1);
  train(unbroken, 0, 6);
  train(broken, 0, 3);
  broken.save(path, /*training=*/true);
  Transformer resumed = Transformer::load(path);
  EXPECT_EQ(resumed.config().dropout, standard().dropout);
  EXPECT_TRUE(same_parameters(broken, resumed));
  train(resumed, 3, 6);
  EXPECT_TRUE(same_parameters(unbroken, resumed));
  std::filesystem::remove(path);
}

TEST(TransformerFiles, ThatAreNoneOfOursAreRefused) {
  const std::string path = testing::TempDir() + "rapt_transformer_other.safetensors";
  const Tensor some({2, 2});
  const auto refused = [&](const std::map<std::string, std::string>& metadata, const std::string& because) {
    write_safetensors(path, {{"tokens.weight", some.view()}}, metadata);
    try {
      (void)Transformer::load(path);
      ADD_FAILURE() << because;
    } catch (const Error& error) {
      EXPECT_EQ(error.what(), "Transformer::load: " + path + because);
    }
  };
  refused({}, R"( is not a rapt model: its metadata says format "" instead of "rapt.transformer.1")");
  refused({{"format", "rapt.transformer.1"}}, ": the metadata has no vocabulary");
  // Sizes that match no tensor are rejected before memory is allocated for them.
  refused({{"format", "rapt.transformer.1"},
           {"vocabulary", "1000000000000"},
           {"context", "4"},
           {"width", "2"},
           {"layers", "1"},
           {"heads", "1"},
           {"hidden", "0"},
           {"dropout", "0"}},
          ": tokens.weight has shape (2, 2), the metadata says (1000000000000, 2)");
  refused({{"format", "rapt.transformer.1"}, {"vocabulary", "4x"}},
          R"(: the metadata has vocabulary "4x", which is not a number)");
  std::filesystem::remove(path);
}

TEST(TransformerFiles, CarryTheCallersMetadata) {
  const std::string path = testing::TempDir() + "rapt_transformer_metadata.safetensors";
  const Transformer model({.vocabulary = 3, .context = 4, .width = 4, .layers = 1, .heads = 1}, 1);
  model.save(path, /*training=*/false, {{"mine", "a\nb"}});
  EXPECT_EQ(SafetensorsFile(path).metadata().at("mine"), "a\nb");
  EXPECT_TRUE(same_parameters(model, Transformer::load(SafetensorsFile(path), "m")));
  for (const char* key : {"format", "width", "steps"}) {
    EXPECT_THROW(model.save(path, false, {{key, "1"}}), Error) << key;
  }
  std::filesystem::remove(path);
}

TEST(TransformerWeights, AreCausalAndSumToOne) {
  TransformerConfig config = standard();
  const Transformer model(config, 1);
  const std::vector<std::int32_t> tokens = some_tokens(24, 20, 1);
  std::vector<Tensor> weights;
  (void)model.logits(tokens, 2, &weights);
  ASSERT_EQ(weights.size(), 2U);
  for (const Tensor& layer : weights) {
    ASSERT_EQ(layer.shape(), (Dims{2, 2, 12, 12}));
    for (std::size_t row = 0; row < 48; ++row) {
      float sum = 0.0F;
      for (std::size_t j = 0; j < 12; ++j) {
        const float weight = layer.values<float>()[row * 12 + j];
        sum += weight;
        if (j > row % 12) {
          EXPECT_EQ(weight, 0.0F);
        }
      }
      EXPECT_NEAR(sum, 1.0F, 1e-6F);
    }
  }
}

TEST(TransformerWithoutMask, SeesTheFuture) {
  TransformerConfig config = standard();
  config.causal = false;
  Transformer model(config, 1);
  EXPECT_TRUE(same_parameters(model, Transformer(standard(), 1)));  // the mask has no parameters
  std::vector<std::int32_t> tokens = some_tokens(12, 20, 1);
  std::vector<Tensor> weights;
  const Tensor before = model.logits(tokens, 1, &weights);
  for (const float weight : weights[0].values<float>()) EXPECT_GT(weight, 0.0F);
  tokens.back() = (tokens.back() + 1) % 20;
  EXPECT_FALSE(same_bits(before.view().slice(1, 0, 1), model.logits(tokens).view().slice(1, 0, 1)));

  TransformerCache cache;
  expect_error([&] { (void)model.logits(tokens, cache); },
               "Transformer::logits: a cache requires a causal model; this one is not causal, so earlier tokens would "
               "have to be recomputed: give all tokens at once");
  model.set_causal(true);
  EXPECT_TRUE(same_bits(model.logits(tokens).view(), Transformer(standard(), 1).logits(tokens).view()));
  EXPECT_NO_THROW((void)model.logits(tokens, cache));
}

TEST(TransformerFiles, SayWhereTheMaskIsOff) {
  const std::string path = testing::TempDir() + "rapt_transformer_mask.safetensors";
  Transformer model({.vocabulary = 3, .context = 4, .width = 4, .layers = 1, .heads = 1, .causal = false}, 1);
  model.save(path);
  EXPECT_FALSE(Transformer::load(path).config().causal);
  // A mask that is on is not recorded, so files from before this option existed load unchanged.
  model.set_causal(true);
  model.save(path);
  EXPECT_FALSE(SafetensorsFile(path).metadata().contains("causal"));
  EXPECT_TRUE(Transformer::load(path).config().causal);
  EXPECT_THROW(model.save(path, false, {{"causal", "true"}}), Error);
  std::filesystem::remove(path);
}

TEST(TransformerErrors, SayWhatWouldWork) {
  TransformerConfig config = standard();
  config.width = 33;
  expect_error([&] { (void)Transformer(config); },
               "Transformer: width 33 is not a multiple of heads 2; heads must divide width");
  config = standard(), config.layers = 0;
  expect_error([&] { (void)Transformer(config); }, "Transformer: layers is 0; it must be positive");
  Transformer model(standard());
  const std::vector<std::int32_t> tokens = {1, 2, 3}, big = {1, 20};
  expect_error(
      [&] { (void)model.logits(tokens, 2); },
      "Transformer::logits: there are 3 tokens for 2 batch rows; all rows must have the same number, at least one");
  expect_error([&] { (void)model.logits(big); },
               "Transformer::logits: tokens[1] is 20; it must be at least 0 and less than the vocabulary, 20");
  expect_error([&] { (void)model.logits(std::vector<std::int32_t>(41, 0)); },
               "Transformer::logits: a sequence of 41 tokens is longer than the context, 40");
  expect_error(
      [&] { (void)model.add_gradients(tokens, big, 1); },
      "Transformer::add_gradients: there are 2 targets for 3 tokens; give one for each, or kNoTarget to ignore it");
  expect_error([&] { model.set_parameter("nothing", Tensor({1})); },
               "Transformer::set_parameter: there is no parameter \"nothing\"");
}

}  // namespace
}  // namespace rapt::test
