// Compares the numbers of the exhibits with known results.
#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "exhibits/exhibit.h"
#include "support/exhibit_pages.h"

namespace rapt::test {
namespace {

using exhibits::Chart;
using exhibits::Code;
using exhibits::Exhibit;
using exhibits::Lang;
using exhibits::Matrix;
using exhibits::Paint;
using exhibits::Table;

TEST(ExhibitsAnswers, TheRightSplitCutsTokensAndTheWrongOneCutsMemory) {
  const Matrix right = titled(exhibits::exhibit(11, Lang::en), "head 1 holds");
  EXPECT_EQ(right.values, (std::vector<double>{4, 5, 6, 7, 12, 13, 14, 15, 20, 21, 22, 23}));
  EXPECT_EQ(right.groups, (std::vector<int>{0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2}));
  const Matrix wrong = titled(exhibits::exhibit(11, Lang::en, {{"split", "wrong"}}), "head 1 holds");
  EXPECT_EQ(wrong.values, (std::vector<double>{12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23}));  // view(B, H, L, D)
  EXPECT_EQ(wrong.groups, (std::vector<int>{1, 1, 1, 1, 2, 2, 2, 2, 2, 2, 2, 2}));
}

TEST(ExhibitsAnswers, OppositeMasksGiveOneAnswer) {
  const Exhibit right = exhibits::exhibit(6, Lang::en), wrong = exhibits::exhibit(6, Lang::en, {{"read", "inverted"}});
  const auto weights = [](const Exhibit& exhibit) {
    std::vector<const Matrix*> found;
    for (const Matrix* matrix : all_of<Matrix>(exhibit)) {
      if (matrix->paint == Paint::weight) found.push_back(matrix);
    }
    return found;
  };
  EXPECT_EQ(weights(right)[0]->values, weights(right)[1]->values);
  for (std::size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(row_of(*weights(right)[0], i)[3], 0.0);
    EXPECT_EQ(row_of(*weights(wrong)[0], i), (std::vector<double>{0, 0, 0, 1}));
    EXPECT_EQ(row_of(*weights(wrong)[1], i), (std::vector<double>{0, 0, 0, 1}));
  }
}

TEST(ExhibitsAnswers, TheNumberOfParametersDoesNotDependOnTheHeads) {
  const Exhibit exhibit = exhibits::exhibit(4, Lang::en);
  const Table& counts = *all_of<Table>(exhibit)[0];
  for (const auto& row : counts.rows) EXPECT_EQ(row.back(), std::to_string(4 * 8 * 8 + 4 * 8));
}

TEST(ExhibitsAnswers, TheScaleKeepsVarianceEntropyAndGradient) {
  const Exhibit exhibit = exhibits::exhibit(8, Lang::en);
  const auto charts = all_of<Chart>(exhibit);
  ASSERT_EQ(charts.size(), 3U);
  EXPECT_EQ(charts[0]->x.front(), 4);
  EXPECT_EQ(charts[0]->x.back(), 1024);
  for (std::size_t n = 0; n < charts[0]->x.size(); ++n) {
    EXPECT_NEAR(charts[0]->series[0].y[n], 1.0, 0.5);
    EXPECT_NEAR(charts[0]->series[1].y[n] / charts[0]->x[n], charts[0]->series[0].y[n], 1e-9);
  }
  EXPECT_GT(charts[1]->series[0].y.back(), 16);
  EXPECT_LT(charts[1]->series[1].y.back(), 1.5);
  EXPECT_GT(charts[2]->series[0].y.back(), 10 * charts[2]->series[1].y.back());
}

TEST(ExhibitsAnswers, ARowThatSeesNothingIsZeroOrNanOrEven) {
  const auto last_row = [](const std::string& how) {
    const Exhibit exhibit = exhibits::exhibit(7, Lang::en, {{"hide", how}});
    return row_of(titled(exhibit, "weights"), 3);
  };
  EXPECT_EQ(last_row("inf"), (std::vector<double>{0, 0, 0, 0}));
  EXPECT_EQ(last_row("1e9"), (std::vector<double>{0.25, 0.25, 0.25, 0.25}));
  EXPECT_EQ(last_row("zero"), (std::vector<double>{0, 0, 0, 0}));
  for (const double weight : last_row("book")) EXPECT_TRUE(std::isnan(weight));
  const Exhibit zero = exhibits::exhibit(7, Lang::en, {{"hide", "zero"}});
  EXPECT_LT(sum_of(row_of(titled(zero, "weights"), 0)), 0.9);
}

TEST(ExhibitsAnswers, TheTablesOfTheHeadsAddUpToTheOneTable) {
  const Exhibit exhibit = exhibits::exhibit(12, Lang::en);
  const Matrix one = titled(exhibit, "without the split");
  for (std::size_t n = 0; n < one.values.size(); ++n) {
    double sum = 0;
    for (int h = 0; h < 4; ++h) sum += titled(exhibit, "q·k, head " + std::to_string(h)).values[n];
    EXPECT_NEAR(one.values[n], sum, 1e-12);
  }
}

TEST(ExhibitsAnswers, SoftmaxOverQueriesMakesColumnsSumToOne) {
  const Exhibit exhibit = exhibits::exhibit(1, Lang::en, {{"axis", "queries"}});
  const Matrix weights = titled(exhibit, "dim=-2");
  const Matrix scores = titled(exhibit, "scores");
  for (std::size_t j = 0; j < 5; ++j) {
    double powers = 0;
    for (std::size_t i = 0; i < 5; ++i) powers += std::exp(scores.values[i * 5 + j]);
    for (std::size_t i = 0; i < 5; ++i) {
      EXPECT_NEAR(weights.values[i * 5 + j], std::exp(scores.values[i * 5 + j]) / powers, 1e-12);
    }
  }
}

TEST(ExhibitsAnswers, TheOutputIsTheSumOfTheWeightedValues) {
  const Exhibit exhibit = exhibits::exhibit(2, Lang::en);
  const Matrix parts = titled(exhibit, "weighted sum");
  for (std::size_t d = 0; d < 6; ++d) {
    double sum = 0;
    for (std::size_t j = 0; j < 5; ++j) sum += row_of(parts, j)[d];
    EXPECT_NEAR(row_of(parts, 5)[d], sum, 1e-12);
  }
}

TEST(ExhibitsAnswers, TheCheaterLosesInGeneration) {
  const Exhibit exhibit = exhibits::exhibit(9, Lang::en, {{"mask", "off"}});
  const Chart& chart = *all_of<Chart>(exhibit)[0];
  ASSERT_EQ(chart.series.size(), 4U);
  const double honest = chart.series[1].y.back(), cheats = chart.series[2].y.back(),
               generates = chart.series[3].y.back();
  EXPECT_NEAR(honest, std::log(2.0), 0.15);
  EXPECT_LT(cheats, 0.4);  // below log 2, the minimum without seeing the answer
  EXPECT_GT(generates, 1.0);
  EXPECT_EQ(chart.series[0].y.back(), std::log(2.0));
}

TEST(ExhibitsAnswers, TheTriangleIsInTheCornerThatWasAskedFor) {
  for (const bool bottom : {true, false}) {
    const Exhibit exhibit = exhibits::exhibit(10, Lang::en, {{"corner", bottom ? "bottom-right" : "top-left"}});
    const Matrix weights = titled(exhibit, bottom ? "bottom-right" : "top-left");
    for (std::size_t i = 0; i < 3; ++i) {
      for (std::size_t j = 0; j < 7; ++j) {
        EXPECT_EQ(row_of(weights, i)[j] > 0, j <= i + (bottom ? 4 : 0)) << i << ", " << j;
      }
    }
  }
}

TEST(ExhibitsAnswers, PermuteBringsTheThreePartsForward) {
  EXPECT_EQ(titled(exhibits::exhibit(15, Lang::en, {{"part", "v"}}), "v, head 1").values,
            (std::vector<double>{10, 11, 22, 23, 34, 35}));  // 12 i + 4 · 2 + 2 h + d
  EXPECT_EQ(titled(exhibits::exhibit(15, Lang::en, {{"order", "view"}}), "q, head 1").values,
            (std::vector<double>{6, 7, 8, 9, 10, 11}));
}

TEST(ExhibitsAnswers, OnlyTheMaskStaysWhereItWas) {
  const Exhibit exhibit = exhibits::exhibit(17, Lang::en);
  const Table& file = *all_of<Table>(exhibit)[0];
  for (const auto& row : file.rows) {
    EXPECT_EQ(row[2] == "yes", row[0] != "mask");
    EXPECT_EQ(row[3] == "0.000", row[0] == "mask");
  }
}

TEST(ExhibitsAnswers, HeadsThatDoNotDivideAreRefusedByTheLayer) {
  const Exhibit exhibit = exhibits::exhibit(5, Lang::en, {{"heads", "5"}});
  EXPECT_THAT(all_of<Code>(exhibit)[0]->text, testing::HasSubstr("24"));
  EXPECT_THAT(all_of<Code>(exhibit)[0]->text, testing::HasSubstr("5"));
  EXPECT_TRUE(all_of<Code>(exhibits::exhibit(5, Lang::en)).empty());
}

TEST(ExhibitsAnswers, PartialOutputsAddUpToTheWhole) {
  for (const char* ranks : {"1", "2", "4"}) {
    for (const char* bias : {"once", "every"}) {
      const Exhibit exhibit = exhibits::exhibit(18, Lang::en, {{"ranks", ranks}, {"bias", bias}});
      const Matrix outputs = titled(exhibit, "partial");
      const auto parts = static_cast<std::size_t>(std::stoi(ranks));
      double off = 0;
      for (std::size_t d = 0; d < 8; ++d) {
        double sum = 0;
        for (std::size_t r = 0; r < parts; ++r) sum += row_of(outputs, r)[d];
        EXPECT_NEAR(sum, row_of(outputs, parts)[d], 1e-12);
        off = std::max(off, std::abs(sum - row_of(outputs, parts + 1)[d]));
      }
      EXPECT_EQ(off > 1e-12, bias == std::string("every") && parts > 1);
    }
  }
}

}  // namespace
}  // namespace rapt::test
