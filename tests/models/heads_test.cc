// What a head does, on weights that are made to do it.
#include "models/heads.h"

#include <cstdint>
#include <functional>
#include <vector>

#include <gtest/gtest.h>

namespace rapt::test {
namespace {

using models::Habit;
using models::HeadSummary;
using models::TokenKind;

// [CLS] the cat saw the cat . [SEP]
std::vector<TokenKind> sentence() {
  return {{.id = 101, .special = true},
          {.id = 1},
          {.id = 2},
          {.id = 3},
          {.id = 1},
          {.id = 2},
          {.id = 4, .delimiter = true},
          {.id = 102, .special = true, .delimiter = true}};
}

// 0.8 of a row's weight on target(i), the rest spread evenly.
HeadSummary of(const std::function<std::int64_t(std::int64_t)>& target, double share = 0.8) {
  const std::vector<TokenKind> tokens = sentence();
  const auto count = std::ssize(tokens);
  Tensor weights({count, count}, DType::f32);
  for (std::int64_t i = 0; i < count; ++i) {
    for (std::int64_t j = 0; j < count; ++j) {
      weights.view().at<float>(i, j) = static_cast<float>((1 - share) / static_cast<double>(count));
    }
    weights.view().at<float>(i, target(i)) += static_cast<float>(share);
  }
  return models::summarize(weights, tokens);
}

TEST(HeadSummaries, NameWhatAHeadDoes) {
  const auto habit = [](const std::function<std::int64_t(std::int64_t)>& target) { return of(target).habit; };
  EXPECT_EQ(habit([](std::int64_t i) { return std::max<std::int64_t>(0, i - 1); }), Habit::previous);
  EXPECT_EQ(habit([](std::int64_t i) { return std::min<std::int64_t>(7, i + 1); }), Habit::next);
  EXPECT_EQ(habit([](std::int64_t i) { return i; }), Habit::itself);
  EXPECT_EQ(habit([](std::int64_t /*i*/) { return 0; }), Habit::first);
  EXPECT_EQ(habit([](std::int64_t /*i*/) { return 7; }), Habit::delimiter);
  EXPECT_EQ(habit([](std::int64_t i) { return i % 2 == 0 ? 6 : 7; }), Habit::delimiter);
  EXPECT_EQ(habit([](std::int64_t i) { return i * 3 % 8; }), Habit::spread);
  // "the" to the other "the", "cat" to the other "cat"
  const std::vector<std::int64_t> equal{0, 4, 5, 3, 1, 2, 3, 7};
  EXPECT_EQ(habit([&](std::int64_t i) { return equal[static_cast<std::size_t>(i)]; }), Habit::same);
  // the second "the" to the first "cat", the second "cat" to "saw"
  const std::vector<std::int64_t> followed{0, 6, 6, 1, 2, 3, 2, 7};
  EXPECT_EQ(habit([&](std::int64_t i) { return followed[static_cast<std::size_t>(i)]; }), Habit::induction);
}

TEST(HeadSummaries, HaveTheShareAsEvidence) {
  const HeadSummary first = of([](std::int64_t /*i*/) { return 0; });
  EXPECT_NEAR(first.share, 0.8 + 0.2 / 8, 1e-6);
  EXPECT_GT(first.keys, 1.5);
  EXPECT_LT(first.keys, 4.0);
  const HeadSummary even = of([](std::int64_t /*i*/) { return 0; }, 0.0);
  EXPECT_EQ(even.habit, Habit::spread);
  EXPECT_EQ(even.share, 0.0);
  EXPECT_NEAR(even.keys, 8.0, 1e-4);
}

TEST(HeadSummaries, DoNotCountTheRowsOfAddedTokens) {
  // The words attend to the token before; [CLS] and [SEP] would make half of the mean something else.
  EXPECT_NEAR(of([](std::int64_t i) { return i == 0 || i == 7 ? 3 : i - 1; }).share, 0.8 + 0.2 / 8, 1e-6);
}

TEST(HeadSummaries, KnowDelimiters) {
  for (const char* text : {".", " ,", "!", "。", "，"}) EXPECT_TRUE(models::is_delimiter(text, false, false)) << text;
  for (const char* text : {"a", "", " ", "..", "'", "-"})
    EXPECT_FALSE(models::is_delimiter(text, false, false)) << text;
  EXPECT_TRUE(models::is_delimiter("[SEP]", true, false));
  EXPECT_FALSE(models::is_delimiter("[CLS]", true, true));
}

TEST(HeadSummaries, ComeLayerByLayer) {
  Tensor weights({2, 3, 1, 1}, DType::f32);
  for (float& each : weights.values<float>()) each = 1.0F;
  const std::vector<TokenKind> one{{.id = 5, .special = true}};
  const std::vector<HeadSummary> all = models::summarize_all(weights, one);
  ASSERT_EQ(all.size(), 6);
  EXPECT_EQ(all[0].habit, Habit::itself);
  EXPECT_EQ(all[0].share, 1.0);
}

}  // namespace
}  // namespace rapt::test
