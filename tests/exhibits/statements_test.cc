// What the exhibits say in words: conventions that must be the same on every page, and facts about PyTorch.
// bindings/python/interop/test_exhibit_facts.py compares the same facts with PyTorch itself.
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "exhibits/builder.h"
#include "exhibits/exhibit.h"
#include "rapt/multi_head_attention.h"
#include "support/exhibit_pages.h"

namespace rapt::test {
namespace {

using exhibits::Code;
using exhibits::Exhibit;
using exhibits::Lang;
using exhibits::Matrix;
using exhibits::Table;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

const Table& table_titled(const Exhibit& exhibit, const std::string& title) {
  for (const Table* table : all_of<Table>(exhibit)) {
    if (table->title.find(title) != std::string::npos) return *table;
  }
  throw Error("no table " + title);
}

// ---------------------------------------------------------------- rows and columns of a weight

TEST(ExhibitsStatements, AHeadOwnsRowsOfItsProjection) {
  for (const int heads : {1, 2, 4, 8}) {
    const Exhibit exhibit = exhibits::exhibit(4, Lang::en, {{"heads", std::to_string(heads)}});
    const Matrix shown = titled(exhibit, "W_q (out, in)");
    const MultiHeadAttention layer(
        {.embed_size = 8, .heads = heads, .separate_projections = true, .batch_first = true, .dtype = DType::f64}, 7);
    for (std::size_t out = 0; out < 8; ++out) {
      EXPECT_EQ(shown.rows[out], "q" + std::to_string(out));
      EXPECT_EQ(shown.columns[out], "x" + std::to_string(out));
      for (std::size_t in = 0; in < 8; ++in) {
        EXPECT_EQ(shown.groups[out * 8 + in], static_cast<int>(out) / (8 / heads));
        EXPECT_EQ(shown.values[out * 8 + in], layer.parameters()[0].value.at<double>(out, in));
      }
    }
    EXPECT_THAT(exhibit.answer, HasSubstr("block of rows of W_q"));
  }
}

TEST(ExhibitsStatements, RowsAndColumnsOfAWeightMeanTheSameOnEveryPage) {
  for (const Lang lang : {Lang::en, Lang::zh}) {
    for (const int number : {4, 18}) {
      EXPECT_THAT(prose_of(exhibits::exhibit(number, lang)), Contains(exhibits::kWeightAxes.in(lang))) << number;
    }
    for (int number = 1; number <= exhibits::kQuestions; ++number) {
      const std::string page = exhibits::as_json(exhibits::exhibit(number, lang));
      for (const char* wrong : {"column blocks", "block of columns", "columns of W_q", "W_q 按列", "W 中的若干列"}) {
        EXPECT_THAT(page, Not(HasSubstr(wrong))) << number;
      }
    }
  }
}

// ---------------------------------------------------------------- view, reshape, contiguous

TEST(ExhibitsStatements, ViewFailsWhereReshapeAndContiguousCopy) {
  const std::vector<std::pair<Lang, std::vector<std::string>>> words{
      {Lang::en, {"works, 0 numbers copied", "works, 24 numbers copied", "error"}},
      {Lang::zh, {"可以，复制 0 个数", "可以，复制 24 个数", "报错"}}};
  for (const auto& [lang, says] : words) {
    const Exhibit exhibit = exhibits::exhibit(11, lang);
    EXPECT_THAT(
        table_titled(exhibit, "(B, L, H, D)").rows,
        ElementsAre(ElementsAre(".view(B, L, E)", says[0], says[2]), ElementsAre(".reshape(B, L, E)", says[0], says[1]),
                    ElementsAre(".contiguous().view(B, L, E)", says[0], says[1])));
    for (const Code* code : all_of<Code>(exhibit)) EXPECT_THAT(code->text, Not(HasSubstr("reshape")));
  }
}

// ---------------------------------------------------------------- −1e9 and types

TEST(ExhibitsStatements, ABillionDoesNotFitIntoHalfAndFinfoMinDoes) {
  const Exhibit exhibit = exhibits::exhibit(7, Lang::en);
  EXPECT_THAT(table_titled(exhibit, "each type").rows,
              ElementsAre(ElementsAre("f32", "-1000000000", "works", "-3.4028e+38"),
                          ElementsAre("bf16", "-998244352", "works", "-3.3895e+38"),
                          ElementsAre("f16", "-inf", "error", "-65504")));
  for (const Lang lang : {Lang::en, Lang::zh}) {
    EXPECT_THAT(prose_of(exhibits::exhibit(7, lang)),
                Contains(testing::AllOf(HasSubstr("value cannot be converted to type c10::Half without overflow"),
                                        HasSubstr("torch.finfo(scores.dtype).min"))));
  }
  // As with −1e9, a row that sees nothing still has a sum of 1.
  EXPECT_THAT(table_titled(exhibit, "sums to").rows,
              Contains(ElementsAre("torch.finfo(dtype).min", "1.00", "1.00", "1.00", "1.00")));
}

// ---------------------------------------------------------------- what true means, and where the triangle is

TEST(ExhibitsStatements, TheTableOfMasksNamesWhoKeepsAndWhoIgnores) {
  const Exhibit exhibit = exhibits::exhibit(6, Lang::en);
  const Table& table = table_titled(exhibit, "meaning of true");
  EXPECT_THAT(table.rows, Contains(ElementsAre("torch key_padding_mask", "ignore", "(B, Lk)")));
  EXPECT_THAT(table.rows, Contains(ElementsAre("torch attn_mask, bool", "ignore", "(Lq, Lk), (B·H, Lq, Lk)")));
  EXPECT_THAT(table.rows, Contains(ElementsAre("torch scaled_dot_product_attention", "keep", "(…, Lq, Lk)")));
  EXPECT_THAT(table.rows, Contains(ElementsAre("transformers attention_mask", "keep", "(B, Lk)")));
  EXPECT_THAT(table.rows, Contains(ElementsAre("Keras attention_mask", "keep", "(B, Lq, Lk)")));
  titled(exhibit, "1 means ignore (TensorFlow tutorial)");  // Keras itself keeps where the mask is 1
}

TEST(ExhibitsStatements, TheTriangleIsCountedInRows) {
  titled(exhibits::exhibit(10, Lang::en), "row i sees key j ≤ i + 4");
  const Exhibit wrong = exhibits::exhibit(10, Lang::en, {{"corner", "top-left"}});
  titled(wrong, "row i sees key j ≤ i");
  EXPECT_THAT(prose_of(wrong), Contains(HasSubstr("`scaled_dot_product_attention` is top-left")));
}

// ---------------------------------------------------------------- need_weights

TEST(ExhibitsStatements, TheCostOfWeightsIsCounted) {
  const Exhibit exhibit = exhibits::exhibit(13, Lang::en);
  EXPECT_THAT(table_titled(exhibit, "returns for 256 words").rows,
              ElementsAre(ElementsAre("False", "16384", "0", "64"), ElementsAre("True, mean", "16384", "65536", "320"),
                          ElementsAre("True, per head", "16384", "524288", "2112")));
  EXPECT_THAT(prose_of(exhibit), Contains(testing::AllOf(HasSubstr("writes 5 times"), HasSubstr("per head 33 times"),
                                                         HasSubstr("takes 512 MiB"), HasSubstr("output 1 MiB"))));
  EXPECT_THAT(exhibits::as_json(exhibit), Not(HasSubstr(" ms\"")));
}

// ---------------------------------------------------------------- gradients without the scale

TEST(ExhibitsStatements, WithoutTheScaleMostQueriesGetNoGradient) {
  const Exhibit exhibit = exhibits::exhibit(8, Lang::en);
  EXPECT_THAT(prose_of(exhibit),
              Contains(testing::ContainsRegex("Without the scale, 1[0-6] of 16 queries get less than 1%")));
}

}  // namespace
}  // namespace rapt::test
