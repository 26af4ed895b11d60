// Whole models: hidden states, every attention weight and logits as transformers computed them (make_models.py).
#include "models/model.h"

#include <cstdint>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "models/tiny_model.h"
#include "support/files.h"

namespace rapt::test {
namespace {

using models::Model;
using models::Predicts;
using ::testing::HasSubstr;

constexpr double kWeights = 2e-6, kHidden = 2e-5;

class TinyModels : public ::testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(Of, TinyModels, ::testing::Values("bert", "distilbert", "roberta", "gpt2"),
                         [](const auto& name) { return std::string(name.param); });

models::Run run_of(TinyModel& tiny, const models::RunOptions& options = {.logits = true}) {
  const models::ModelFiles files = tiny.files();
  return Model::read(files).run(tiny.ids(), options);
}

void expect_same_runs(const models::Run& a, const models::Run& b) {
  expect_same(a.hidden, b.hidden);
  expect_same(a.weights, b.weights);
  expect_same(a.logits, b.logits);
}

TEST_P(TinyModels, AnswerAsTransformersDid) {
  TinyModel tiny(GetParam());
  const models::Run run = run_of(tiny);
  EXPECT_LT(largest_difference(run.weights, tiny.expected.at("weights")), kWeights);
  EXPECT_LT(largest_difference(run.hidden, tiny.expected.at("hidden")), kHidden);
  EXPECT_LT(largest_difference(run.logits, tiny.expected.at("logits")), kHidden);
}

TEST_P(TinyModels, GiveTheSameBitsFromFilesOf16Bits) {
  TinyModel tiny(GetParam());
  const models::Run whole = run_of(tiny);
  for (const DType dtype : {DType::f16, DType::bf16}) {
    tiny.store_as(dtype);  // their weights are exact in both
    expect_same_runs(run_of(tiny), whole);
  }
}

TEST_P(TinyModels, AreReadFromSeveralFiles) {
  TinyModel tiny(GetParam());
  const models::Run whole = run_of(tiny);
  const models::ModelFiles files = tiny.files(3);
  ASSERT_EQ(files.weights().size(), 3);
  expect_same_runs(Model::read(files).run(tiny.ids(), {.logits = true}), whole);
}

TEST_P(TinyModels, AreReadUnderAnyPrefix) {
  TinyModel tiny(GetParam());
  const models::Run whole = run_of(tiny);
  tiny.rename([](const std::string& name) { return "0.auto_model." + name; });
  expect_same_runs(run_of(tiny), whole);
}

// As the model without a prediction head is stored.
TEST_P(TinyModels, AreReadWithoutAPrefixAndWithoutAHead) {
  TinyModel tiny(GetParam());
  const models::Run whole = run_of(tiny);
  const std::string own = tiny.name == "gpt2" ? "transformer." : tiny.name + ".";
  std::erase_if(tiny.tensors, [&](const auto& each) { return !each.first.starts_with(own); });
  ASSERT_FALSE(tiny.tensors.empty());
  tiny.rename([&](const std::string& name) { return name.substr(own.size()); });
  const models::ModelFiles files = tiny.files();
  const Model model = Model::read(files);
  const models::Run bare = model.run(tiny.ids(), {.logits = true});
  expect_same(bare.hidden, whole.hidden);
  expect_same(bare.weights, whole.weights);
  EXPECT_EQ(model.predicts(), tiny.name == "gpt2" ? Predicts::next : Predicts::nothing);
  EXPECT_EQ(bare.logits.count(), tiny.name == "gpt2" ? whole.logits.count() : 0);
}

TEST_P(TinyModels, ReadTheOldNamesOfLayerNorms) {
  TinyModel tiny(GetParam());
  const models::Run whole = run_of(tiny);
  std::int64_t renamed = 0;
  tiny.rename([&](std::string name) {
    const bool is_norm = name.find("orm.") != std::string::npos || name.find("ln_") != std::string::npos;
    if (is_norm) ++renamed;
    if (is_norm && name.ends_with(".weight")) name.replace(name.size() - 6, 6, "gamma");
    if (is_norm && name.ends_with(".bias")) name.replace(name.size() - 4, 4, "beta");
    return name;
  });
  ASSERT_GT(renamed, 8);
  expect_same_runs(run_of(tiny), whole);
}

TEST_P(TinyModels, ContributeNothingFromHeadsThatAreOff) {
  TinyModel tiny(GetParam());
  const models::Run run = run_of(tiny, {.off = {{0, 1}, {1, 3}}});
  EXPECT_LT(largest_difference(run.hidden, tiny.expected.at("off.hidden")), kHidden);
  EXPECT_GT(largest_difference(run.hidden, tiny.expected.at("hidden")), 0.01);
  const Tensor none({12, 12}, DType::f32);
  expect_same(run.weights.view().select(0, 0).select(0, 1), none);
  // The other heads of the first layer do not notice.
  const models::Run whole = run_of(tiny);
  for (const int head : {0, 2, 3}) {
    expect_same(run.weights.view().select(0, 0).select(0, head), whole.weights.view().select(0, 0).select(0, head));
  }
}

TEST_P(TinyModels, ReturnOnlyWhatIsWanted) {
  TinyModel tiny(GetParam());
  const models::Run run = run_of(tiny, {.hidden = false, .weights = false});
  EXPECT_EQ(run.hidden.count() + run.weights.count() + run.logits.count(), 0);
}

TEST_P(TinyModels, RefuseWhatTheyCannotRead) {
  TinyModel tiny(GetParam());
  const models::ModelFiles files = tiny.files();
  const Model model = Model::read(files);
  const auto refused = [&](std::vector<std::int32_t> ids, std::vector<models::HeadPlace> off = {}) {
    return refusal_of([&] { (void)model.run(ids, {.off = std::move(off)}); });
  };
  EXPECT_EQ(refused({}), "there are no tokens; a model needs at least one");
  EXPECT_THAT(refused({2, -1}), HasSubstr("a token has id -1; the model has embeddings for ids 0 to "));
  const auto beyond = static_cast<std::int32_t>(model.config().vocabulary);
  EXPECT_THAT(refused({beyond}), HasSubstr("a token has id " + std::to_string(beyond)));
  const std::int64_t most = model.config().most_tokens();
  EXPECT_EQ(most, tiny.name == "roberta" ? 38 : 40);
  EXPECT_EQ(refused(std::vector<std::int32_t>(static_cast<std::size_t>(most), 3)), "");
  EXPECT_EQ(
      refused(std::vector<std::int32_t>(static_cast<std::size_t>(most + 1), 3)),
      "the text has " + std::to_string(most + 1) + " tokens; the model has positions for " + std::to_string(most));
  EXPECT_EQ(refused({3}, {{2, 0}}), "there is no head 2.0; layers are 0 to 1 and heads 0 to 3");
  EXPECT_EQ(refused({3}, {{0, -1}}), "there is no head 0.-1; layers are 0 to 1 and heads 0 to 3");
}

TEST(TinyGpt2, ScalesScoresAsItsConfigSays) {
  TinyModel tiny("gpt2");
  tiny.config["scale_attn_weights"] = false;
  tiny.config["scale_attn_by_inverse_layer_idx"] = true;
  EXPECT_LT(largest_difference(run_of(tiny).hidden, tiny.expected.at("scaled.hidden")), kHidden);
  EXPECT_GT(largest_difference(run_of(tiny).hidden, tiny.expected.at("hidden")), 0.01);
}

TEST(TinyGpt2, PredictsWithAMatrixOfItsOwnIfTheConfigSaysSo) {
  TinyModel tiny("gpt2");
  const models::Run tied = run_of(tiny);
  tiny.config["tie_word_embeddings"] = false;
  EXPECT_EQ(run_of(tiny).logits.count(), 0);  // the file has none
  Tensor table = tiny.tensors.at("transformer.wte.weight").clone();
  for (float& each : table.values<float>()) each *= 2;
  tiny.tensors.emplace("lm_head.weight", std::move(table));
  Tensor doubled = tied.logits.clone();
  for (float& each : doubled.values<float>()) each *= 2;
  expect_same(run_of(tiny).logits, doubled);
}

}  // namespace
}  // namespace rapt::test
