// The training loop of rapt train and its sampler: a resumed run gives the same bits as an uninterrupted one.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "rapt/error.h"
#include "rapt/safetensors.h"
#include "support/same_bits.h"
#include "train/builtin.h"
#include "train/induction.h"
#include "train/prompts.h"
#include "train/reverse.h"
#include "train/sampler.h"
#include "train/text.h"
#include "train/trainer.h"

namespace rapt::test {
namespace {

using train::Trainer;

// A recipe that trains quickly, with everything that could make a resumed run differ: dropout, weight decay, a warm-up.
train::Recipe small_recipe() {
  return {.model = {.context = 12, .width = 16, .layers = 2, .heads = 2, .hidden = 24, .dropout = 0.123456789},
          .batch = 4,
          .rate = 0.01,
          .weight_decay = 0.1,
          .warm_up = 7,
          .every = 5,
          .steps = 20};
}

std::string some_text() {
  std::string text;
  for (int n = 0; n < 100; ++n) text += "one and " + std::to_string(n % 7) + " more ";
  return text;
}

std::string bytes_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

class TrainLoop : public testing::Test {
 protected:
  void SetUp() override { std::filesystem::create_directories(folder_); }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  std::string path(const std::string& name) const { return folder_ + "/" + name; }

  // Unique to this test, because tests run in parallel.
  std::string folder_ =
      testing::TempDir() + "rapt_train_loop_" + testing::UnitTest::GetInstance()->current_test_info()->name();
  train::Text task_{some_text(), "text", small_recipe()};
};

TEST_F(TrainLoop, ResumedAnywhereHasTheBitsOfAnUnbrokenRun) {
  Trainer unbroken(task_, 3);
  while (!unbroken.done()) unbroken.step();
  unbroken.save(path("unbroken"));
  for (const std::int64_t stop : {0, 1, 4, 5, 13, 20}) {
    {
      Trainer first(task_, 3);
      while (first.steps() < stop) first.step();
      first.save(path("stopped"));
    }
    Trainer resumed(task_, 3, path("stopped"));
    EXPECT_EQ(resumed.steps(), stop);
    while (!resumed.done()) resumed.step();
    EXPECT_EQ(resumed.curve(), unbroken.curve()) << stop;
    resumed.save(path("resumed"));
    EXPECT_EQ(bytes_of(path("resumed")), bytes_of(path("unbroken"))) << stop;
  }
  EXPECT_EQ(unbroken.curve().size(), 4U);
}

TEST_F(TrainLoop, WhatWasTrainedWithSomethingElseIsRefused) {
  Trainer(task_, 3).save(path("at_start"));
  const auto refusal = [&](const train::Task& task, std::uint64_t seed, const std::string& name) {
    try {
      const Trainer trainer(task, seed, path(name));
      return std::string("taken");
    } catch (const Error& error) {
      return std::string(error.what()).substr(0, path(name).size()) == path(name)
                 ? std::string(error.what()).substr(path(name).size())
                 : std::string(error.what());
    }
  };
  EXPECT_EQ(refusal(task_, 4, "at_start"),
            " was trained with seed 3, this run has 4; only a run with the same settings can be resumed");
  EXPECT_EQ(refusal(train::Reverse(), 3, "at_start"),
            " was trained with task text, this run has reverse; only a run with the same settings can be resumed");
  train::Recipe wider = small_recipe();
  wider.model.width = 32;
  EXPECT_EQ(refusal(train::Text(some_text(), "text", wider), 3, "at_start"),
            " was trained with width 16, this run has 32; only a run with the same settings can be resumed");
  // Not an option of the command: simulates a recipe that has changed.
  train::Recipe other = small_recipe();
  other.beta2 = 0.9;
  EXPECT_EQ(refusal(train::Text(some_text(), "text", other), 3, "at_start"),
            " was trained with beta2 0.99, this run has 0.9; only a run with the same settings can be resumed");
  EXPECT_NE(refusal(train::Text(some_text() + "!", "text", small_recipe()), 3, "at_start").find("trained with text"),
            std::string::npos);

  Transformer(small_recipe().model = {.vocabulary = 4, .context = 4, .width = 4, .layers = 1, .heads = 1})
      .save(path("plain"));
  EXPECT_EQ(refusal(task_, 3, "plain"), " was not written by rapt train: its metadata has no \"rapt.task\"");
}

TEST_F(TrainLoop, WithoutTheMaskItCheatsAndCannotGenerate) {
  train::Reverse task;
  task.set_causal(false);
  Trainer trainer(task, 1);
  while (trainer.steps() < 100) trainer.step();
  EXPECT_LT(trainer.last_loss(), 0.1);
  EXPECT_LT(trainer.evaluate().loss, 0.1);
  EXPECT_GT(trainer.evaluate_causal().loss, 3.0);  // a random guess has log 27 = 3.3
  EXPECT_FALSE(trainer.model().config().causal);
  trainer.save(path("cheats"));
  EXPECT_EQ(Trainer(task, 1, path("cheats")).steps(), 100);
  task.set_causal(true);
  try {
    const Trainer honest(task, 1, path("cheats"));
    ADD_FAILURE() << "taken";
  } catch (const Error& error) {
    EXPECT_EQ(error.what(),
              path("cheats") +
                  " was trained with mask off, this run has on; only a run with the same settings can be resumed");
  }
}

TEST_F(TrainLoop, GoesOnWithTheRateItWasGiven) {
  Trainer trainer(task_, 3);
  while (trainer.steps() < 10) trainer.step();
  const Tensor before = Tensor::copy_of(trainer.model().parameters()[0].value);
  trainer.set_rate(0.0);  // the rate also scales weight decay, so nothing changes
  trainer.step();
  EXPECT_TRUE(same_bits(before.view(), trainer.model().parameters()[0].value));
  trainer.set_rate(0.02);
  trainer.step();
  EXPECT_FALSE(same_bits(before.view(), trainer.model().parameters()[0].value));
  EXPECT_THROW(trainer.set_rate(-1.0), Error);
  EXPECT_EQ(trainer.rate(), 0.02);

  trainer.save(path("faster"));
  EXPECT_THROW(Trainer(task_, 3, path("faster")), Error);  // this run has a rate of 0.01
  train::Recipe recipe = small_recipe();
  recipe.rate = 0.02;
  const train::Text faster(some_text(), "text", recipe);
  Trainer resumed(faster, 3, path("faster"));
  while (!trainer.done()) trainer.step();
  while (!resumed.done()) resumed.step();
  EXPECT_EQ(resumed.curve(), trainer.curve());
}

TEST_F(TrainLoop, AFinishedModelHasNoOptimizerAndKeepsItsCard) {
  Trainer trainer(task_, 1);
  while (!trainer.done()) trainer.step();
  trainer.save_model(path("model"));
  const SafetensorsFile file(path("model"));
  for (const std::string& name : file.names()) EXPECT_FALSE(name.starts_with("adam.")) << name;
  const train::ModelCard card = train::model_card(file, "model");
  EXPECT_EQ(card.task, "text");
  EXPECT_EQ(card.steps, 20);
  EXPECT_EQ(card.characters.all(), task_.characters().all());
}

TEST_F(TrainLoop, AGoalEndsTheRunAtAnEvaluation) {
  const train::Reverse task;
  Trainer trainer(task, 1);
  while (!trainer.done()) trainer.step();
  EXPECT_TRUE(trainer.reached());
  EXPECT_LT(trainer.steps(), 500);
  EXPECT_EQ(trainer.steps() % task.recipe().every, 0);
  trainer.save(path("reached"));
  EXPECT_TRUE(Trainer(task, 1, path("reached")).done());
}

TEST_F(TrainLoop, SamplingThroughTheCacheIsSamplingFromAllTokens) {
  Trainer trainer(task_, 1);
  while (!trainer.done()) trainer.step();
  const Transformer& model = trainer.model();
  std::vector<std::int32_t> all = task_.characters().encode(std::string_view("one"));
  train::Sampler sampler(model, all, {.temperature = 0.0});
  for (int n = 0; n < 9; ++n) {  // up to the context
    const Tensor logits = model.logits(all);
    const auto last = logits.values<float>().last(static_cast<std::size_t>(model.config().vocabulary));
    EXPECT_EQ(sampler.next().token, std::max_element(last.begin(), last.end()) - last.begin()) << n;
    all.push_back(static_cast<std::int32_t>(std::max_element(last.begin(), last.end()) - last.begin()));
  }
  for (int n = 0; n < 40; ++n) (void)sampler.next();  // the context slides, so this can continue forever
}

TEST_F(TrainLoop, SamplingDrawsAsTheSeedSays) {
  const Transformer model({.vocabulary = 30, .context = 8, .width = 8, .layers = 1, .heads = 1}, 1);
  const auto drawn = [&](const train::SamplerOptions& options) {
    train::Sampler sampler(model, {1}, options);
    std::vector<std::int32_t> tokens;
    for (int n = 0; n < 50; ++n) tokens.push_back(sampler.next().token);
    return tokens;
  };
  EXPECT_EQ(drawn({.temperature = 1.0, .seed = 5}), drawn({.temperature = 1.0, .seed = 5}));
  EXPECT_NE(drawn({.temperature = 1.0, .seed = 5}), drawn({.temperature = 1.0, .seed = 6}));
  EXPECT_EQ(drawn({.temperature = 1.0, .top_k = 1, .seed = 5}), drawn({.temperature = 0.0}));
  EXPECT_EQ(drawn({.temperature = 1e-9, .seed = 5}), drawn({.temperature = 0.0}));
}

TEST(TrainBuiltIn, IsSmallAndMeetsItsGoals) {
  EXPECT_LT(train::builtin_induction().size(), 200'000U);
  const SafetensorsFile file(train::builtin_induction(), "built in");
  EXPECT_EQ(train::model_card(file, "built in").task, "induction");
  const train::Evaluation found = train::Induction().evaluate(Transformer::load(file, "built in"));
  for (const train::Measure& measure : found.measures) EXPECT_TRUE(measure.reached()) << measure.key;
}

TEST(TrainPrompts, AreOfTheTasksOwnCharacters) {
  const train::Reverse reverse;
  const train::ModelCard card{"reverse", reverse.characters(), 1};
  const TransformerConfig& model = reverse.recipe().model;
  EXPECT_EQ(train::prompt_for(card, model, "abcdefghijkl", 1).text, "abcdefghijkl|");
  EXPECT_EQ(train::prompt_for(card, model, std::nullopt, 1).tokens.size(), 13U);
  EXPECT_THROW((void)train::prompt_for(card, model, "abc", 1), Error);
  EXPECT_THROW((void)train::prompt_for(card, model, "ABCDEFGHIJKL", 1), Error);
  EXPECT_THROW((void)train::prompt_for(card, model, "", 1), Error);
  const train::Induction induction;
  const train::ModelCard of_induction{"induction", induction.characters(), 1};
  EXPECT_THROW((void)train::prompt_for(of_induction, induction.recipe().model, std::string(33, 'a'), 1), Error);
  const auto answer = [&](const std::string& text) {
    return train::prompt_for(of_induction, induction.recipe().model, text, 1).answer;
  };
  EXPECT_EQ(answer("wordsxyzwor"), 5);                       // dsxyz
  EXPECT_EQ(answer("ABCDEFGHIJKLMNOPQRSTUVWXYZabcABC"), 1);  // the context ends
  EXPECT_EQ(answer("ABC"), 1);                               // nothing repeats
}

}  // namespace
}  // namespace rapt::test
