// GPT-2 continues a text: as transformers does, and with the bits of a full pass for every token.
#include "models/generation.h"

#include <cstdint>
#include <set>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "models/files.h"
#include "models/tiny_model.h"
#include "support/files.h"

namespace rapt::test {
namespace {

using models::Generation;
using models::Model;
using ::testing::HasSubstr;

class TinyGeneration : public ::testing::Test {
 protected:
  TinyModel tiny_{"gpt2"};
  models::ModelFiles files_ = tiny_.files();
  Model model_ = Model::read(files_);

  std::vector<std::int32_t> tokens_of(const models::GenerationOptions& options, std::size_t count) {
    Generation generation(model_, tiny_.ids(), options);
    std::vector<std::int32_t> tokens;
    while (tokens.size() < count) tokens.push_back(generation.next().token);
    return tokens;
  }
};

TEST_F(TinyGeneration, TakesTheTokensThatTransformersTakes) {
  const std::vector<std::int32_t> greedy = tiny_.whole_numbers("greedy");
  ASSERT_EQ(greedy.size(), 10);
  EXPECT_EQ(tokens_of({}, greedy.size()), greedy);
}

TEST_F(TinyGeneration, HasTheBitsOfAFullPass) {
  for (const std::vector<models::HeadPlace>& off : {std::vector<models::HeadPlace>{}, {{0, 2}, {1, 0}}}) {
    std::vector<std::int32_t> ids = tiny_.ids();
    Generation generation(model_, ids, {.temperature = 1.0, .off = off});
    for (int n = 0; n < 8; ++n) {
      const models::Likely next = generation.next();
      const models::Run whole = model_.run(ids, {.off = off, .logits = true});
      const std::int64_t last = std::ssize(ids) - 1;
      expect_same(generation.logits(), whole.logits.view().slice(0, last, last + 1));
      ids.push_back(next.token);
    }
  }
}

TEST_F(TinyGeneration, EndsWhereThePositionsEnd) {
  Generation generation(model_, tiny_.ids());
  int count = 0;
  for (; !generation.full(); ++count) (void)generation.next();
  EXPECT_EQ(count, 29);  // after 12 of 40 positions; nothing follows the token that would be the 41st
  EXPECT_EQ(refusal_of([&] { (void)generation.next(); }), "the text has 41 tokens; the model has positions for 40");
}

TEST_F(TinyGeneration, DrawsByTheSeed) {
  const models::GenerationOptions hot{.temperature = 2.0, .seed = 7};
  EXPECT_EQ(tokens_of(hot, 8), tokens_of(hot, 8));
  std::set<std::vector<std::int32_t>> different;
  for (std::uint64_t seed = 0; seed < 8; ++seed) different.insert(tokens_of({.temperature = 2.0, .seed = seed}, 8));
  EXPECT_GT(different.size(), 4);
  EXPECT_EQ(tokens_of({.temperature = 1e-3}, 8), tokens_of({}, 8));
}

TEST_F(TinyGeneration, IsRefusedForAModelThatDoesNotPredictTheNextToken) {
  TinyModel bert("bert");
  const models::ModelFiles files = bert.files();
  const Model model = Model::read(files);
  EXPECT_THAT(refusal_of([&] { Generation(model, bert.ids()); }), HasSubstr("does not predict the next token"));
}

TEST(MostLikely, SortsByProbability) {
  Tensor logits({5}, DType::f32);
  std::copy_n(std::vector<float>{1.0F, 3.0F, 3.0F, 0.0F, 2.0F}.begin(), 5, logits.values<float>().begin());
  const auto three = models::most_likely(logits, 3);
  ASSERT_EQ(three.size(), 3);
  EXPECT_EQ(three[0].token, 1);  // of equal ones the first
  EXPECT_EQ(three[1].token, 2);
  EXPECT_EQ(three[2].token, 4);
  const double sum = 1 + 1 + std::exp(-1.0) + std::exp(-2.0) + std::exp(-3.0);
  EXPECT_NEAR(three[0].probability, 1 / sum, 1e-12);
  EXPECT_NEAR(three[2].probability, std::exp(-1.0) / sum, 1e-12);
  EXPECT_EQ(models::most_likely(logits, 100).size(), 5);
  EXPECT_EQ(models::most_likely(logits, 2, 0.0)[0].probability, 1.0);
  EXPECT_EQ(models::most_likely(logits, 2, 0.0)[1].probability, 0.0);
  EXPECT_NEAR(models::most_likely(logits, 1, 1e6)[0].probability, 0.2, 1e-5);
}

}  // namespace
}  // namespace rapt::test
