// The tasks of rapt train: the contents of their batches.
#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "rapt/error.h"
#include "train/dates.h"
#include "train/induction.h"
#include "train/reverse.h"
#include "train/text.h"

namespace rapt::test {
namespace {

using train::Batch;
using train::Dates;
using train::Induction;

std::string sample_text() {
  std::string text;
  for (int n = 0; n < 400; ++n) text += "line " + std::to_string(n * n % 97) + " of a text, with ü and 字\n";
  return text;
}

std::vector<std::unique_ptr<train::Task>> every_task() {
  std::vector<std::unique_ptr<train::Task>> tasks;
  tasks.push_back(std::make_unique<Induction>());
  tasks.push_back(std::make_unique<train::Reverse>());
  tasks.push_back(std::make_unique<Dates>());
  tasks.push_back(std::make_unique<train::Text>(sample_text(), "sample"));
  return tasks;
}

TEST(TrainTasks, ABatchIsAPureFunctionOfSeedAndStep) {
  for (const auto& task : every_task()) {
    const Batch batch = task->batch(3, 7);
    EXPECT_EQ(std::ssize(batch.tokens), batch.rows * task->recipe().model.context) << task->name();
    EXPECT_EQ(batch.tokens.size(), batch.targets.size());
    (void)task->batch(9, 1);
    EXPECT_EQ(batch.tokens, task->batch(3, 7).tokens) << task->name();
    EXPECT_EQ(batch.targets, task->batch(3, 7).targets);
    EXPECT_NE(batch.tokens, task->batch(3, 8).tokens);
    EXPECT_NE(batch.tokens, task->batch(4, 7).tokens);
  }
}

TEST(TrainTasks, ATokenIsOfTheVocabularyAndATargetIsTheNextToken) {
  for (const auto& task : every_task()) {
    const std::int64_t length = task->recipe().model.context;
    const Batch batch = task->batch(1, 0);
    std::int64_t targets = 0;
    for (std::int64_t n = 0; n < std::ssize(batch.tokens); ++n) {
      const auto at = static_cast<std::size_t>(n);
      ASSERT_GE(batch.tokens[at], 0);
      ASSERT_LT(batch.tokens[at], task->characters().size());
      if (batch.targets[at] == kNoTarget) continue;
      ++targets;
      const bool padded = task->name() == "dates";  // a date may be shorter than its row
      if ((n + 1) % length != 0 && !padded) {
        EXPECT_EQ(batch.targets[at], batch.tokens[at + 1]) << task->name();
      }
    }
    EXPECT_GT(targets, batch.rows) << task->name();
  }
}

TEST(TrainTasks, InductionTargetsStoodAfterTheSameTokenBefore) {
  const Induction task;
  const Batch batch = task.batch(1, 5);
  std::int64_t targets = 0;
  for (std::int64_t row = 0; row < batch.rows; ++row) {
    const auto first = batch.tokens.begin() + row * Induction::kLength;
    for (std::int64_t i = 0; i < Induction::kLength; ++i) {
      const std::int32_t target = batch.targets[static_cast<std::size_t>(row * Induction::kLength + i)];
      if (target == kNoTarget) continue;
      ++targets;
      const auto earlier = std::find(first, first + i, first[i]);
      ASSERT_NE(earlier, first + i);
      EXPECT_EQ(earlier[1], target);
    }
  }
  EXPECT_EQ(targets, batch.rows * (Induction::kBlock - 1));
}

TEST(TrainTasks, InductionBlocksAndDistancesTakeEveryValue) {
  train::Draw draw(1, train::Stream::training, 0);
  std::set<std::int64_t> blocks, distances;
  for (int n = 0; n < 2000; ++n) {
    const Induction::Row row = Induction::row(draw);
    blocks.insert(row.block), distances.insert(row.distance);
    ASSERT_LE(row.block + row.distance + Induction::kBlock, Induction::kLength);
  }
  const auto free_places = static_cast<std::size_t>(Induction::kLength - 2 * Induction::kBlock + 1);
  EXPECT_EQ(blocks.size(), free_places);
  EXPECT_EQ(distances.size(), free_places);
}

TEST(TrainTasks, ReverseIsTheMirrorOfItsLetters) {
  const train::Reverse task;
  const Batch batch = task.batch(1, 0);
  const std::int64_t length = task.recipe().model.context, letters = train::Reverse::kLetters;
  for (std::int64_t row = 0; row < batch.rows; ++row) {
    for (std::int64_t n = 0; n < letters; ++n) {
      EXPECT_EQ(batch.targets[static_cast<std::size_t>(row * length + letters + n)],
                batch.tokens[static_cast<std::size_t>(row * length + letters - 1 - n)]);
    }
  }
}

TEST(TrainTasks, DatesAreWrittenInFourForms) {
  const train::Date date{1987, 3, 5};
  EXPECT_EQ(Dates::written(date, 0).text, "March 5, 1987");
  EXPECT_EQ(Dates::written(date, 1).text, "5 Mar 1987");
  EXPECT_EQ(Dates::written(date, 2).text, "05.03.1987");
  EXPECT_EQ(Dates::written(date, 3).text, "Thursday, 5 March 1987");
  EXPECT_EQ(Dates::iso(date), "1987-03-05");
  const train::WrittenDate written = Dates::written({2024, 12, 31}, 3);
  const auto part = [&](const train::WrittenDate::Part& p) {
    return written.text.substr(static_cast<std::size_t>(p.first), static_cast<std::size_t>(p.last - p.first));
  };
  EXPECT_EQ(written.text, "Tuesday, 31 December 2024");
  EXPECT_EQ(part(written.year) + part(written.month) + part(written.day), "2024December31");
}

TEST(TrainTasks, HeldOutDatesAreNeverTrainedOn) {
  const Dates task;
  std::set<std::string> trained;
  for (std::int64_t step = 0; step < 300; ++step) {
    const Batch batch = task.batch(2, step);
    const std::int64_t length = task.recipe().model.context;
    for (std::int64_t row = 0; row < batch.rows; ++row) {
      std::vector<std::int32_t> answer;
      for (std::int64_t i = row * length; i < (row + 1) * length; ++i) {
        const std::int32_t target = batch.targets[static_cast<std::size_t>(i)];
        if (target != kNoTarget) answer.push_back(target);
      }
      trained.insert(task.characters().decode(answer));
    }
  }
  EXPECT_GT(trained.size(), 10000U);
  train::Draw draw(0, train::Stream::evaluation, 0);
  for (int n = 0; n < 2000; ++n) {
    const train::Date date = Dates::date(draw, /*held_out=*/true);
    EXPECT_FALSE(trained.contains(Dates::iso(date))) << Dates::iso(date);
  }
}

TEST(TrainTasks, TextKeepsItsLastTenthForEvaluation) {
  std::string text(1000, 'a');
  text += std::string(112, 'b');
  train::Recipe recipe = train::Text::standard_recipe();
  recipe.model.context = 16;
  const train::Text task(text, "letters", recipe);
  EXPECT_EQ(task.characters_held_out(), 111);
  EXPECT_EQ(task.characters_trained(), 1001);
  EXPECT_EQ(task.characters().all(), "ab");
}

TEST(TrainTasks, WhatIsNoTextIsRefused) {
  const auto refusal = [](const std::string& text) {
    try {
      const train::Text task(text, "f.txt");
      return std::string("taken");
    } catch (const Error& error) {
      return std::string(error.what());
    }
  };
  EXPECT_EQ(refusal("abc"),
            "f.txt has 3 characters, and a tenth of them is kept for validation; a context of 128 needs 1290: give a "
            "longer text");
  EXPECT_EQ(refusal(std::string(500, 'x')),
            "f.txt has 500 characters, and a tenth of them is kept for validation; a context of 128 needs 1290: give a "
            "longer text, or a context of at most 49");
  EXPECT_EQ(refusal(std::string("ab\0c", 4)),
            "f.txt is not a text file: byte 2 is 0, as in a binary file; give a file of UTF-8 text");
  for (const char* bad : {"ab\xff", "ab\xc3", "ab\xed\xa0\x80", "ab\xc0\xaf", "ab\xf4\x90\x80\x80"}) {
    EXPECT_EQ(refusal(bad), "f.txt is not a text file: byte 2 is not UTF-8; give a file of UTF-8 text");
  }
}

}  // namespace
}  // namespace rapt::test
