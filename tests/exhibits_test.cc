// The exhibits: whole in both languages and under every switch, and their numbers against answers known beforehand.
#include <cmath>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "exhibits/exhibit.h"
#include "rapt/error.h"
#include "support/expect_error.h"

namespace rapt::test {
namespace {

using exhibits::Chart;
using exhibits::Code;
using exhibits::Exhibit;
using exhibits::Lang;
using exhibits::Matrix;
using exhibits::Mood;
using exhibits::Paint;
using exhibits::Prose;
using exhibits::Settings;
using exhibits::Switch;
using exhibits::Table;

// Every combination of choices.
std::vector<Settings> all_settings(const std::vector<Switch>& switches) {
  std::vector<Settings> all{{}};
  for (const Switch& each : switches) {
    std::vector<Settings> more;
    for (const Settings& settings : all) {
      for (const exhibits::Choice& choice : each.choices) {
        more.push_back(settings);
        more.back()[each.key] = choice.value;
      }
    }
    all = std::move(more);
  }
  return all;
}

std::string words_of(const Settings& settings) {
  std::string words;
  for (const auto& [key, value] : settings) words += key + "=" + value + " ";
  return words;
}

bool has_chinese(const std::string& text) {
  for (std::size_t n = 0; n + 2 < text.size(); ++n) {
    const auto byte = static_cast<unsigned char>(text[n]);
    if (byte >= 0xE4 && byte <= 0xE9) return true;  // U+4000 … U+9FFF in UTF-8
  }
  return false;
}

template <class Kind>
std::vector<const Kind*> all_of(const Exhibit& exhibit) {
  std::vector<const Kind*> found;
  for (const exhibits::Block& block : exhibit.blocks) {
    if (const Kind* each = std::get_if<Kind>(&block)) found.push_back(each);
  }
  return found;
}

std::vector<double> row_of(const Matrix& matrix, std::size_t row) {
  const std::size_t across = matrix.columns.size();
  const auto begin = matrix.values.begin() + static_cast<std::ptrdiff_t>(row * across);
  return {begin, begin + static_cast<std::ptrdiff_t>(across)};
}

double sum_of(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) sum += value;
  return sum;
}

class ExhibitsQuestion : public testing::TestWithParam<int> {
 protected:
  // Calls check(settings) under every setting of the question's switches.
  template <class Check>
  void under_every_setting(const Check& check) const {
    for (const Settings& settings : all_settings(exhibits::exhibit(GetParam(), Lang::en).switches)) {
      SCOPED_TRACE(words_of(settings));
      check(settings);
    }
  }
};

INSTANTIATE_TEST_SUITE_P(Number, ExhibitsQuestion, testing::Range(1, exhibits::kQuestions + 1),
                         [](const auto& test) { return std::to_string(test.param); });

void expect_whole(const Exhibit& exhibit) {
  EXPECT_FALSE(exhibit.question.empty());
  EXPECT_FALSE(exhibit.answer.empty());
  EXPECT_GE(exhibit.blocks.size(), 4U);
  for (const Switch& each : exhibit.switches) {
    EXPECT_FALSE(each.label.empty());
    EXPECT_GE(each.choices.size(), 2U);
    for (const exhibits::Choice& choice : each.choices) {
      EXPECT_FALSE(choice.label.empty());
      EXPECT_EQ(choice.value.find_first_of(" ="), std::string::npos);
    }
  }
  for (const Prose* prose : all_of<Prose>(exhibit)) EXPECT_FALSE(prose->text.empty());
  for (const Code* code : all_of<Code>(exhibit)) EXPECT_FALSE(code->text.empty());
  for (const Table* table : all_of<Table>(exhibit)) {
    EXPECT_FALSE(table->title.empty());
    EXPECT_FALSE(table->rows.empty());
    for (const auto& row : table->rows) EXPECT_EQ(row.size(), table->header.size()) << table->title;
  }
  for (const Chart* chart : all_of<Chart>(exhibit)) {
    EXPECT_FALSE(chart->title.empty());
    EXPECT_GE(chart->x.size(), 2U);
    for (const exhibits::Series& series : chart->series) EXPECT_EQ(series.y.size(), chart->x.size()) << series.name;
  }
  for (const Matrix* matrix : all_of<Matrix>(exhibit)) {
    SCOPED_TRACE(matrix->title);
    EXPECT_FALSE(matrix->title.empty());
    EXPECT_EQ(matrix->values.size(), matrix->rows.size() * matrix->columns.size());
    EXPECT_NE(matrix->reading.find("{value}"), std::string::npos) << matrix->reading;
    EXPECT_EQ(matrix->groups.size(), matrix->paint == Paint::group ? matrix->values.size() : 0U);
    for (const int group : matrix->groups) {
      EXPECT_GE(group, 0);
      EXPECT_LT(group, std::ssize(matrix->legend));
    }
  }
  // No place for a number was left open.
  EXPECT_EQ(exhibits::as_json(exhibit).find("{0}"), std::string::npos);
  EXPECT_EQ(exhibits::as_json(exhibit).find("{1}"), std::string::npos);
}

TEST_P(ExhibitsQuestion, IsWholeUnderEverySwitch) {
  under_every_setting([&](const Settings& settings) {
    expect_whole(exhibits::exhibit(GetParam(), Lang::en, settings));
    expect_whole(exhibits::exhibit(GetParam(), Lang::zh, settings));
  });
}

TEST_P(ExhibitsQuestion, HasTheSameNumbersInBothLanguages) {
  under_every_setting([&](const Settings& settings) {
    const Exhibit en = exhibits::exhibit(GetParam(), Lang::en, settings);
    const Exhibit zh = exhibits::exhibit(GetParam(), Lang::zh, settings);
    ASSERT_EQ(en.blocks.size(), zh.blocks.size());
    for (std::size_t n = 0; n < en.blocks.size(); ++n) EXPECT_EQ(en.blocks[n].index(), zh.blocks[n].index()) << n;
    const auto first = all_of<Matrix>(en), second = all_of<Matrix>(zh);
    for (std::size_t n = 0; n < first.size(); ++n) {
      EXPECT_EQ(first[n]->rows.size(), second[n]->rows.size());
      EXPECT_EQ(first[n]->groups, second[n]->groups);
      EXPECT_EQ(first[n]->mood, second[n]->mood);
      for (std::size_t i = 0; i < first[n]->values.size(); ++i) {
        const double a = first[n]->values[i], b = second[n]->values[i];
        EXPECT_TRUE(a == b || (std::isnan(a) && std::isnan(b))) << first[n]->title;
      }
    }
    const auto charts = all_of<Chart>(en), others = all_of<Chart>(zh);
    for (std::size_t n = 0; n < charts.size(); ++n) {
      EXPECT_EQ(charts[n]->x, others[n]->x);
      for (std::size_t s = 0; s < charts[n]->series.size(); ++s) {
        EXPECT_EQ(charts[n]->series[s].y, others[n]->series[s].y);
      }
    }
  });
}

TEST_P(ExhibitsQuestion, SpeaksChineseInChinese) {
  under_every_setting([&](const Settings& settings) {
    const Exhibit zh = exhibits::exhibit(GetParam(), Lang::zh, settings);
    EXPECT_TRUE(has_chinese(zh.question));
    EXPECT_TRUE(has_chinese(zh.answer));
    for (const Prose* prose : all_of<Prose>(zh)) EXPECT_TRUE(has_chinese(prose->text)) << prose->text;
    for (const Matrix* matrix : all_of<Matrix>(zh)) EXPECT_TRUE(has_chinese(matrix->reading)) << matrix->reading;
    const Exhibit en = exhibits::exhibit(GetParam(), Lang::en, settings);
    EXPECT_FALSE(has_chinese(exhibits::as_json(en)));
  });
}

TEST_P(ExhibitsQuestion, WeightsSumToOneWhereNothingIsWrong) {
  under_every_setting([&](const Settings& settings) {
    const Exhibit exhibit = exhibits::exhibit(GetParam(), Lang::en, settings);
    for (const Matrix* matrix : all_of<Matrix>(exhibit)) {
      if (matrix->paint != Paint::weight || matrix->mood == Mood::wrong) continue;
      for (std::size_t i = 0; i < matrix->rows.size(); ++i) {
        const double sum = sum_of(row_of(*matrix, i));
        // Question 5 has a row that sees nothing.
        const bool sees_nothing = GetParam() == 5 && i + 1 == matrix->rows.size();
        EXPECT_NEAR(sum, sees_nothing ? 0.0 : 1.0, 1e-6) << matrix->title << ", row " << i;
      }
    }
  });
}

TEST_P(ExhibitsQuestion, IsTheSameEveryTime) {
  Exhibit first = exhibits::exhibit(GetParam(), Lang::en), second = exhibits::exhibit(GetParam(), Lang::en);
  for (Exhibit* each : {&first, &second}) {
    for (exhibits::Block& block : each->blocks) {
      Table* table = std::get_if<Table>(&block);
      if (table != nullptr && table->measured) table->rows.clear();
    }
  }
  EXPECT_EQ(exhibits::as_json(first), exhibits::as_json(second));
}

TEST_P(ExhibitsQuestion, IsJsonWithEveryBlock) {
  under_every_setting([&](const Settings& settings) {
    const Exhibit exhibit = exhibits::exhibit(GetParam(), Lang::zh, settings);
    const nlohmann::json data = nlohmann::json::parse(exhibits::as_json(exhibit));
    EXPECT_EQ(data.at("number"), GetParam());
    EXPECT_EQ(data.at("question"), exhibit.question);
    ASSERT_EQ(data.at("blocks").size(), exhibit.blocks.size());
    const std::vector<std::string> kinds{"prose", "matrix", "table", "chart", "code"};
    for (std::size_t n = 0; n < exhibit.blocks.size(); ++n) {
      EXPECT_EQ(data.at("blocks")[n].at("kind"), kinds[exhibit.blocks[n].index()]);
    }
    for (std::size_t n = 0; n < exhibit.switches.size(); ++n) {
      EXPECT_EQ(data.at("switches")[n].at("chosen"), settings.at(exhibit.switches[n].key));
    }
  });
}

// ---------------------------------------------------------------- the list, and what is refused

TEST(ExhibitsList, HasEveryQuestionWithoutBlocks) {
  for (const Lang lang : {Lang::en, Lang::zh}) {
    const std::vector<Exhibit> all = exhibits::questions(lang);
    ASSERT_EQ(std::ssize(all), exhibits::kQuestions);
    for (std::size_t n = 0; n < all.size(); ++n) {
      EXPECT_EQ(all[n].number, static_cast<int>(n) + 1);
      EXPECT_TRUE(all[n].blocks.empty());
      EXPECT_EQ(all[n].question, exhibits::exhibit(all[n].number, lang).question);
    }
    EXPECT_EQ(nlohmann::json::parse(exhibits::as_json(all)).size(), all.size());
  }
}

TEST(ExhibitsList, RefusesWhatThereIsNotAndSaysWhatThereIs) {
  const auto ask = [](int number, const Settings& settings = {}) {
    return [=] { (void)exhibits::exhibit(number, Lang::zh, settings); };
  };
  expect_error(ask(19), "question 19: there are questions 1 to 18");
  expect_error(ask(0), "question 0: there are questions 1 to 18");
  expect_error(ask(4, {{"x", "on"}}), R"(question 4: there is no switch "x"; it has "scale" and "d")");
  expect_error(ask(7, {{"x", "on"}}), R"(question 7: there is no switch "x"; it has "axis")");
  expect_error(ask(4, {{"scale", "x"}}), R"(question 4: "scale" is "on" or "off", not "x")");
  expect_error(ask(4, {{"d", ""}}), R"(question 4: "d" is "64", "4" or "512", not "")");
}

TEST(ExhibitsJson, WritesWhatIsNoNumberAsAWord) {
  Exhibit exhibit;
  Matrix matrix;
  matrix.rows = {"r"}, matrix.columns = {"a", "b", "c", "d"}, matrix.values = {-INFINITY, INFINITY, NAN, 0.5};
  exhibit.blocks.emplace_back(matrix);
  const nlohmann::json data = nlohmann::json::parse(exhibits::as_json(exhibit));
  EXPECT_EQ(data.at("blocks")[0].at("values"), nlohmann::json({"-inf", "inf", "nan", 0.5}));
}

// ---------------------------------------------------------------- answers known beforehand

Matrix titled(const Exhibit& exhibit, const std::string& title) {
  for (const Matrix* matrix : all_of<Matrix>(exhibit)) {
    if (matrix->title.find(title) != std::string::npos) return *matrix;
  }
  throw Error("no matrix " + title);
}

TEST(ExhibitsAnswers, TheRightSplitCutsTokensAndTheWrongOneCutsMemory) {
  const Matrix right = titled(exhibits::exhibit(1, Lang::en), "head 1 holds");
  EXPECT_EQ(right.values, (std::vector<double>{4, 5, 6, 7, 12, 13, 14, 15, 20, 21, 22, 23}));
  EXPECT_EQ(right.groups, (std::vector<int>{0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2}));
  const Matrix wrong = titled(exhibits::exhibit(1, Lang::en, {{"split", "wrong"}}), "head 1 holds");
  EXPECT_EQ(wrong.values, (std::vector<double>{12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23}));  // view(B, H, L, D)
  EXPECT_EQ(wrong.groups, (std::vector<int>{1, 1, 1, 1, 2, 2, 2, 2, 2, 2, 2, 2}));
}

TEST(ExhibitsAnswers, OppositeMasksGiveOneAnswer) {
  const Exhibit right = exhibits::exhibit(2, Lang::en), wrong = exhibits::exhibit(2, Lang::en, {{"read", "inverted"}});
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
  const Exhibit exhibit = exhibits::exhibit(3, Lang::en);
  const Table& counts = *all_of<Table>(exhibit)[0];
  for (const auto& row : counts.rows) EXPECT_EQ(row.back(), std::to_string(4 * 8 * 8 + 4 * 8));
}

TEST(ExhibitsAnswers, TheScaleKeepsVarianceEntropyAndGradient) {
  const Exhibit exhibit = exhibits::exhibit(4, Lang::en);
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
    const Exhibit exhibit = exhibits::exhibit(5, Lang::en, {{"hide", how}});
    return row_of(titled(exhibit, "weights"), 3);
  };
  EXPECT_EQ(last_row("inf"), (std::vector<double>{0, 0, 0, 0}));
  EXPECT_EQ(last_row("1e9"), (std::vector<double>{0.25, 0.25, 0.25, 0.25}));
  EXPECT_EQ(last_row("zero"), (std::vector<double>{0, 0, 0, 0}));
  for (const double weight : last_row("book")) EXPECT_TRUE(std::isnan(weight));
  const Exhibit zero = exhibits::exhibit(5, Lang::en, {{"hide", "zero"}});
  EXPECT_LT(sum_of(row_of(titled(zero, "weights"), 0)), 0.9);
}

TEST(ExhibitsAnswers, TheTablesOfTheHeadsAddUpToTheOneTable) {
  const Exhibit exhibit = exhibits::exhibit(6, Lang::en);
  const Matrix one = titled(exhibit, "without the split");
  for (std::size_t n = 0; n < one.values.size(); ++n) {
    double sum = 0;
    for (int h = 0; h < 4; ++h) sum += titled(exhibit, "q·k, head " + std::to_string(h)).values[n];
    EXPECT_NEAR(one.values[n], sum, 1e-12);
  }
}

TEST(ExhibitsAnswers, SoftmaxOverQueriesMakesColumnsSumToOne) {
  const Exhibit exhibit = exhibits::exhibit(7, Lang::en, {{"axis", "queries"}});
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
  const Exhibit exhibit = exhibits::exhibit(8, Lang::en);
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
  const double honest = chart.series[0].y.back(), cheats = chart.series[1].y.back(),
               generates = chart.series[2].y.back();
  EXPECT_NEAR(honest, std::log(2.0), 0.15);
  EXPECT_LT(cheats, 0.4);  // below log 2, which is the best without seeing the answer
  EXPECT_GT(generates, 1.0);
  EXPECT_EQ(chart.series[3].y.back(), std::log(2.0));
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
  EXPECT_EQ(titled(exhibits::exhibit(11, Lang::en, {{"part", "v"}}), "v, head 1").values,
            (std::vector<double>{10, 11, 22, 23, 34, 35}));  // 12 i + 4 · 2 + 2 h + d
  EXPECT_EQ(titled(exhibits::exhibit(11, Lang::en, {{"order", "view"}}), "q, head 1").values,
            (std::vector<double>{6, 7, 8, 9, 10, 11}));
}

TEST(ExhibitsAnswers, OnlyTheMaskStaysWhereItWas) {
  const Exhibit exhibit = exhibits::exhibit(14, Lang::en);
  const Table& file = *all_of<Table>(exhibit)[0];
  for (const auto& row : file.rows) {
    EXPECT_EQ(row[2] == "yes", row[0] != "mask");
    EXPECT_EQ(row[3] == "0.000", row[0] == "mask");
  }
}

TEST(ExhibitsAnswers, HeadsThatDoNotDivideAreRefusedByTheLayer) {
  const Exhibit exhibit = exhibits::exhibit(16, Lang::en, {{"heads", "5"}});
  EXPECT_THAT(all_of<Code>(exhibit)[0]->text, testing::HasSubstr("24"));
  EXPECT_THAT(all_of<Code>(exhibit)[0]->text, testing::HasSubstr("5"));
  EXPECT_TRUE(all_of<Code>(exhibits::exhibit(16, Lang::en)).empty());
}

TEST(ExhibitsAnswers, PartialOutputsAddUpToTheWhole) {
  for (const char* ranks : {"1", "2", "4"}) {
    for (const char* bias : {"once", "every"}) {
      const Exhibit exhibit = exhibits::exhibit(17, Lang::en, {{"ranks", ranks}, {"bias", bias}});
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
