// WordPiece as BERT uses it. The expected tokens follow from the rules; bindings/python/interop/test_tokenizers.py
// compares thousands of texts with tokenizers itself.
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "models/tokenizer_files.h"
#include "support/expect_error.h"

namespace rapt::test {
namespace {

using models::Tokenizer;

const std::string kVocabulary =
    vocabulary_of({"[UNK]", "[CLS]", "[SEP]", "[MASK]", "the", "cat", "##s",  "run", "##n", "##ing",  "cafe",
                   ",",     "!",     "中",    "文",     "a",   "##a", "##aa", "ss",  "i",   "\\u0307"});
constexpr std::string_view kAdded =
    R"("added_tokens":[{"id":3,"content":"[MASK]","lstrip":true,"rstrip":false,"single_word":false,"normalized":false,)"
    R"("special":true},{"id":1,"content":"[CLS]","normalized":false,"special":true},)"
    R"({"id":21,"content":"Catfish","normalized":true,"single_word":true,"special":false}])";

Tokenizer bert() { return tokenizer_of(json_of({kBert, kBertTemplate, kAdded, word_piece_model(kVocabulary)})); }

TEST(WordPiece, TakesTheLongestBeginningAndContinuations) {
  EXPECT_EQ(shown(bert().encode("the cats running")),
            "1:[CLS]@0-0 4:the@0-3 5:cat@4-7 6:##s@7-8 7:run@9-12 8:##n@12-13 9:##ing@13-16 2:[SEP]@0-0");
  EXPECT_EQ(shown(bert().encode("aaaa", false)), "15:a@0-1 17:##aa@1-3 16:##a@3-4");
}

TEST(WordPiece, AWordThatCannotBeSplitIsUnknownAsAWhole) {
  EXPECT_EQ(shown(bert().encode("catx cat", false)), "0:[UNK]@0-4 5:cat@5-8");
  EXPECT_EQ(shown(bert().encode(std::string(100, 'a'), false)).substr(0, 8), "15:a@0-1");
  EXPECT_EQ(shown(bert().encode(std::string(101, 'a'), false)), "0:[UNK]@0-101");
}

TEST(WordPiece, OffsetsAreBytesOfTheInput) {
  // É is two bytes. The accent of e is a character of its own, which no token stands for.
  EXPECT_EQ(shown(bert().encode("CAFÉ, cafe\u0301!", false)), "10:cafe@0-5 11:,@5-6 10:cafe@7-11 12:!@13-14");
  EXPECT_EQ(shown(bert().encode("the中文cat", false)), "4:the@0-3 13:中@3-6 14:文@6-9 5:cat@9-12");
}

TEST(WordPiece, ControlCharactersDisappearAndAllWhiteSpaceSplits) {
  EXPECT_EQ(shown(bert().encode("c\u200bat\x7f\tthe\u3000cat\u2028", false)), "5:cat@0-6 4:the@8-11 5:cat@14-17");
}

TEST(WordPiece, AddedTokensAreFoundFirst) {
  EXPECT_EQ(shown(bert().encode("cat   [MASK]cat", false)), "5:cat@0-3 3:[MASK]@3-12 5:cat@12-15");
  EXPECT_EQ(shown(bert().encode("[CLS]the", false)), "1:[CLS]@0-5 4:the@5-8");
  // As whole words only, in the text that the normalizer made.
  EXPECT_EQ(shown(bert().encode("the CATFISH catfishs", false)), "4:the@0-3 21:Catfish@4-11 0:[UNK]@12-20");
}

TEST(WordPiece, LowerCaseOfOneCharacterMayBeTwo) {
  const std::string json = json_of({R"("normalizer":{"type":"Lowercase"})", word_piece_model(kVocabulary)});
  EXPECT_EQ(shown(tokenizer_of(json).encode("\u0130")), "0:[UNK]@0-2");
  EXPECT_EQ(shown(bert().encode("\u0130", false)), "19:i@0-2");
}

TEST(WordPiece, DecodingJoinsContinuationsAndLeavesSpecialTokensOut) {
  const Tokenizer tokenizer = bert();
  EXPECT_EQ(tokenizer.decode(std::vector<std::int32_t>{1, 4, 5, 6, 11, 7, 8, 9, 12, 2}), "the cats, running! [SEP]");
  EXPECT_EQ(tokenizer.decode(std::vector<std::int32_t>{21, 99, -1, 3}), "catfish");
}

TEST(WordPiece, TokensHaveTextAndTheVocabularyASize) {
  const Tokenizer tokenizer = bert();
  EXPECT_EQ(tokenizer.size(), 22);
  EXPECT_EQ(tokenizer.token(9).text, "##ing");
  EXPECT_TRUE(tokenizer.token(3).special);
  EXPECT_FALSE(tokenizer.token(21).special);
  EXPECT_TRUE(tokenizer.encode("").front().special);
  expect_error([&] { (void)tokenizer.token(22); }, "tokenizer: the id 22 is not in the vocabulary");
  expect_error([&] { (void)tokenizer.encode("a\xff"); }, "tokenizer: the text is not UTF-8 at byte 1");
}

TEST(WordPiece, ReadsVocabTxtAsBertHasIt) {
  const std::string lines = "[PAD]\r\n[UNK]\n[CLS]\n[SEP]\n\nÉ\ne\nthe\n中\n##s\n";
  const auto tokens = [&](const std::string& config, const std::string& text) {
    const Tokenizer tokenizer = Tokenizer::read(model_files({{"vocab.txt", lines}, {"tokenizer_config.json", config}}));
    return shown(tokenizer.encode(text));
  };
  EXPECT_EQ(tokens("{}", "THES É"), "2:[CLS]@0-0 7:the@0-3 9:##s@3-4 6:e@5-7 3:[SEP]@0-0");
  EXPECT_EQ(tokens(R"({"do_lower_case":false})", "É The"), "2:[CLS]@0-0 5:É@0-2 1:[UNK]@3-6 3:[SEP]@0-0");
  EXPECT_EQ(tokens(R"({"do_lower_case":false,"strip_accents":true})", "É"), "2:[CLS]@0-0 1:[UNK]@0-2 3:[SEP]@0-0");
  EXPECT_EQ(tokens(R"({"tokenize_chinese_chars":false})", "中the"), "2:[CLS]@0-0 1:[UNK]@0-6 3:[SEP]@0-0");
  EXPECT_EQ(tokens("{}", "[PAD]"), "2:[CLS]@0-0 0:[PAD]@0-5 3:[SEP]@0-0");
}

}  // namespace
}  // namespace rapt::test
