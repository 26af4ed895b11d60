// What stands below a switch follows the switch: numbers, tables and verdicts.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "exhibits/exhibit.h"
#include "exhibits/walk.h"
#include "support/exhibit_pages.h"

namespace rapt::test {
namespace {

using exhibits::Exhibit;
using exhibits::Lang;
using exhibits::Matrix;
using exhibits::Mood;
using exhibits::Prose;
using exhibits::Table;
using exhibits::Walk;
using testing::HasSubstr;

// The only verdict of a page whose text contains `words`.
const Prose& verdict(const Exhibit& exhibit, const std::string& words) {
  const Prose* found = nullptr;
  for (const Prose* prose : all_of<Prose>(exhibit)) {
    if (prose->mood == Mood::plain || prose->text.find(words) == std::string::npos) continue;
    if (found != nullptr) throw Error("two verdicts with " + words);
    found = prose;
  }
  if (found == nullptr) throw Error("no verdict with " + words);
  return *found;
}

std::string percent(double share) { return std::to_string(static_cast<int>(std::lround(100 * share))) + "%"; }

// ---------------------------------------------------------------- question 2: a hard lookup

// The row of a word after W_o, by the formula, with scores multiplied by `scale`.
std::vector<double> after_w_o(const Walk& walk, std::int64_t word, double scale) {
  std::vector<double> combined;
  for (std::int64_t h = 0; h < walk.heads; ++h) {
    const auto at = [&](const Tensor& tensor, std::int64_t i, std::int64_t d) {
      return tensor.view().at<double>(0, i, h * walk.head_size + d);
    };
    std::vector<double> scores;
    for (std::int64_t j = 0; j < walk.length; ++j) {
      double sum = 0;
      for (std::int64_t d = 0; d < walk.head_size; ++d) sum += at(walk.q, word, d) * at(walk.k, j, d);
      scores.push_back(scale * sum);
    }
    const double largest = *std::max_element(scores.begin(), scores.end());
    double powers = 0;
    for (double& score : scores) powers += score = std::exp(score - largest);
    for (std::int64_t d = 0; d < walk.head_size; ++d) {
      double sum = 0;
      for (std::int64_t j = 0; j < walk.length; ++j)
        sum += scores[static_cast<std::size_t>(j)] / powers * at(walk.v, j, d);
      combined.push_back(sum);
    }
  }
  std::vector<double> y;
  for (std::int64_t r = 0; r < exhibits::kEmbedding; ++r) {
    double sum = 0;
    for (std::int64_t c = 0; c < exhibits::kEmbedding; ++c) {
      sum += walk.weight.w_o.view().at<double>(r, c) * combined[static_cast<std::size_t>(c)];
    }
    y.push_back(sum);
  }
  return y;
}

TEST(ExhibitsSwitches, WhatComesAfterTheLookupFollowsTheLookup) {
  const Walk walk = exhibits::take_walk(exhibits::tokenize("the cat and the dog"), 4, false);
  for (const bool hard : {false, true}) {
    for (const std::int64_t word : {1, 3, 4}) {
      SCOPED_TRACE(std::to_string(word) + (hard ? ", hard" : ", soft"));
      const Exhibit exhibit =
          exhibits::exhibit(2, Lang::en, {{"word", std::to_string(word)}, {"lookup", hard ? "hard" : "soft"}});
      if (hard) {
        EXPECT_THAT(prose_of(exhibit), testing::Contains(HasSubstr("one key has a weight of 1.00")));
      }
      const std::vector<double> y = after_w_o(walk, word, hard ? 100.0 : 1 / std::sqrt(6.0));
      const Matrix shown = titled(exhibit, "5. after W_o");
      for (std::size_t d = 0; d < shown.values.size(); ++d) EXPECT_NEAR(shown.values[d], y[d], 1e-10);
      // The vocabulary is "the", "cat", "and" and "dog".
      std::vector<double> powers;
      for (const std::int64_t each : {0, 1, 2, 4}) {
        double sum = 0;
        for (std::int64_t d = 0; d < exhibits::kWho; ++d) {
          sum += y[static_cast<std::size_t>(d)] * walk.x.view().at<double>(0, each, d);
        }
        powers.push_back(std::exp(sum));
      }
      const Matrix chances = titled(exhibit, "probability of each word");
      for (std::size_t n = 0; n < powers.size(); ++n) {
        EXPECT_NEAR(chances.values[n], powers[n] / sum_of(powers), 1e-10);
      }
    }
  }
}

// ---------------------------------------------------------------- question 3: several heads

TEST(ExhibitsSwitches, TheVerdictOnSeveralHeadsIsThatOfTheHeadsShown) {
  for (const std::int64_t heads : {1, 2, 4, 8}) {
    SCOPED_TRACE(heads);
    const Exhibit exhibit = exhibits::exhibit(3, Lang::en, {{"heads", std::to_string(heads)}});
    const Walk walk = exhibits::take_walk(exhibits::tokenize("the cat and the dog"), heads, false);
    double before = 0, same = 0;  // the largest weights of the second "the" on "and", and on both "the"
    const Table& table = *all_of<Table>(exhibit)[0];
    ASSERT_EQ(std::ssize(table.rows), heads);
    for (std::int64_t h = 0; h < heads; ++h) {
      const auto weight = [&](std::int64_t key) { return walk.weights.view().at<double>(0, h, 3, key); };
      before = std::max(before, weight(2));
      same = std::max(same, weight(0) + weight(3));
      EXPECT_NEAR(std::stod(table.rows[static_cast<std::size_t>(h)][1]), weight(2), 0.005);
      EXPECT_NEAR(std::stod(table.rows[static_cast<std::size_t>(h)][2]), weight(0) + weight(3), 0.005);
    }
    const bool apart = before > 0.5 && same > 0.5;
    EXPECT_EQ(apart, heads >= 4);
    const Prose& told = verdict(exhibit, "%");
    EXPECT_EQ(told.mood, apart ? Mood::right : Mood::wrong);
    EXPECT_THAT(told.text, HasSubstr(percent(before)));
    EXPECT_THAT(told.text, HasSubstr(percent(same)));
    for (const Matrix* matrix : all_of<Matrix>(exhibit)) EXPECT_EQ(matrix->mood == Mood::wrong, !apart);
  }
}

// ---------------------------------------------------------------- question 7: ways to mask

constexpr std::size_t kWords = 4;

bool is_hidden(std::size_t i, std::size_t j) { return i + 1 == kWords || j > i; }

// The scores on the page, as softmax gets them.
std::vector<double> shown_scores(const Exhibit& exhibit) {
  for (const Matrix* matrix : all_of<Matrix>(exhibit)) {
    if (matrix->title.starts_with("scores")) return matrix->values;
  }
  std::vector<double> scores;
  for (const Table* table : all_of<Table>(exhibit)) {
    if (!table->title.starts_with("scores")) continue;
    for (const auto& row : table->rows) {
      for (std::size_t j = 1; j < row.size(); ++j) scores.push_back(std::stod(row[j]));
    }
  }
  return scores;
}

std::vector<double> softmax(std::vector<double> row) {
  const double largest = *std::max_element(row.begin(), row.end());
  for (double& score : row) score = std::exp(score - largest);
  const double sum = sum_of(row);
  for (double& power : row) power /= sum;
  return row;
}

TEST(ExhibitsSwitches, EveryWayToMaskShowsItsOwnScoresAndWeights) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity(), kShown = 0.005;  // two decimals
  const std::vector<double> bare = shown_scores(exhibits::exhibit(7, Lang::en, {{"hide", "zero"}}));
  for (const std::string way : {"inf", "book", "1e9", "zero"}) {
    const Exhibit exhibit = exhibits::exhibit(7, Lang::en, {{"hide", way}});
    const std::vector<double> scores = shown_scores(exhibit);
    ASSERT_EQ(scores.size(), kWords * kWords);
    const Matrix weights = titled(exhibit, "weights");
    for (std::size_t i = 0; i < kWords; ++i) {
      const auto row = scores.begin() + static_cast<std::ptrdiff_t>(i * kWords);
      std::vector<double> expected = softmax({row, row + kWords});
      for (std::size_t j = 0; j < kWords; ++j) {
        SCOPED_TRACE(way + ": " + std::to_string(i) + ", " + std::to_string(j));
        const bool filled = is_hidden(i, j) && way != "zero";
        const double score = filled ? (way == "1e9" ? -1e9 : -kInfinity) : bare[i * kWords + j];
        EXPECT_TRUE(scores[i * kWords + j] == score || std::abs(scores[i * kWords + j] - score) <= kShown);
        if (is_hidden(i, j) && way == "zero") expected[j] = 0;
        if (i + 1 == kWords && way == "inf") expected[j] = 0;
        const double weight = row_of(weights, i)[j];
        EXPECT_TRUE(std::abs(weight - expected[j]) <= kShown || (std::isnan(weight) && std::isnan(expected[j])));
      }
    }
  }
}

// ---------------------------------------------------------------- question 8: the scale

TEST(ExhibitsSwitches, TheVerdictOnTheScaleFollowsTheHeadSize) {
  for (const std::string d : {"4", "64", "512"}) {
    SCOPED_TRACE(d);
    const Exhibit exhibit = exhibits::exhibit(8, Lang::en, {{"scale", "off"}, {"d", d}});
    const Matrix weights = titled(exhibit, "softmax of these");
    double mean = 0;
    for (std::size_t i = 0; i < weights.rows.size(); ++i) {
      const std::vector<double> row = row_of(weights, i);
      mean += *std::max_element(row.begin(), row.end()) / static_cast<double>(weights.rows.size());
    }
    const std::string text = verdict(exhibit, "on average").text;
    EXPECT_EQ(text.find("most of each row on one key") != std::string::npos, mean > 0.8) << mean << ": " << text;
    EXPECT_EQ(d != "4", mean > 0.8);
  }
}

// ---------------------------------------------------------------- question 15: packed qkv

TEST(ExhibitsSwitches, RowsOfTheWrongViewAreNotNamedAfterWords) {
  const auto rows = [](const char* order) {
    return titled(exhibits::exhibit(15, Lang::en, {{"order", order}}), "q, head 0").rows;
  };
  EXPECT_THAT(rows("permute"), testing::ElementsAre("I", "love", "you"));
  EXPECT_THAT(rows("view"), testing::ElementsAre("row 0", "row 1", "row 2"));
}

// ---------------------------------------------------------------- question 17: a mask as a parameter

TEST(ExhibitsSwitches, TheMaskThatIsShownIsTheMaskThatWasTrained) {
  const Exhibit exhibit = exhibits::exhibit(17, Lang::en, {{"mask", "parameter"}});
  const Matrix mask = titled(exhibit, "as a parameter");
  double moved = 0;
  for (std::size_t i = 0; i < 4; ++i) {
    for (std::size_t j = 0; j < 4; ++j) {
      const double value = row_of(mask, i)[j];
      EXPECT_EQ(std::isfinite(value), j <= i);
      if (j <= i) moved = std::max(moved, std::abs(value));
    }
  }
  char shown[32];
  std::snprintf(shown, sizeof shown, "by up to %.2f", moved);
  EXPECT_THAT(verdict(exhibit, "parameter").text, HasSubstr(shown));
}

// ---------------------------------------------------------------- question 18: model parallel

TEST(ExhibitsSwitches, OneRankAddsTheBiasOnceWhoeverAddsIt) {
  for (const char* bias : {"once", "every"}) {
    const Exhibit exhibit = exhibits::exhibit(18, Lang::en, {{"ranks", "1"}, {"bias", bias}});
    EXPECT_EQ(titled(exhibit, "partial").mood, Mood::right) << bias;
    for (const Prose* prose : all_of<Prose>(exhibit)) EXPECT_NE(prose->mood, Mood::wrong) << prose->text;
  }
}

TEST(ExhibitsSwitches, ARankThatAddsTheBiasHoldsIt) {
  const auto numbers = [](const char* bias) {
    const Exhibit exhibit = exhibits::exhibit(18, Lang::en, {{"bias", bias}});
    std::vector<int> counts;
    for (const auto& row : all_of<Table>(exhibit)[0]->rows) counts.push_back(std::stoi(row.back()));
    return counts;
  };
  // Rows of W_q, W_k and W_v and their biases, columns of W_o, and the output bias.
  EXPECT_THAT(numbers("once"), testing::ElementsAre(12 * 8 + 12 + 8 * 4 + 8, 12 * 8 + 12 + 8 * 4));
  EXPECT_THAT(numbers("every"), testing::ElementsAre(12 * 8 + 12 + 8 * 4 + 8, 12 * 8 + 12 + 8 * 4 + 8));
}

}  // namespace
}  // namespace rapt::test
