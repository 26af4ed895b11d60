// Broken and hostile files of tokenizers: each is rejected with an error that says what is wrong, without a crash and
// without memory for what a file only claims.
#include <functional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "models/tokenizer/json_value.h"
#include "models/tokenizer/vocabulary.h"
#include "models/tokenizer_files.h"
#include "support/expect_error.h"

namespace rapt::test {
namespace {

const std::string kWords = vocabulary_of({"[UNK]", "[CLS]", "[SEP]", "a", "b", "ab"});
const std::string kModel = word_piece_model(kWords);

std::string with(std::initializer_list<std::string_view> entries) { return json_of(entries); }

struct Broken {
  const char* name;
  std::string json;     // tokenizer.json
  std::string message;  // after the name of the file
};

// clang-format off
const std::vector<Broken> kBroken = {
    {"Empty", "", "byte 1: not JSON from \"\" on"},
    {"Cut", R"({"model":{"type":"Wo)", "byte 21: not JSON from \"\\\"Wo\" on"},
    {"NotAnObject", "[]", "expected an object, found an array"},
    {"NoModel", "{}", "has no \"model\""},
    {"ModelIsNull", R"({"model":null})", "has no \"model\""},
    {"ModelIsAString", R"({"model":"BPE"})", "model: expected an object, found a string"},
    {"KeyTwice", R"({"model":1,"model":2})", "the key \"model\" appears twice in an object"},
    {"NestedTooDeeply", std::string(100'000, '['), "values are nested more than 32 levels deep"},
    {"NumberTooLarge", R"({"model":1e999})", "byte 14: not JSON from \"1e999\" on"},
    {"Unigram", R"({"model":{"type":"Unigram","vocab":[["a",-1.5]]}})", "model: the type \"Unigram\" is not supported; rapt has WordPiece and BPE"},
    {"NoType", R"({"model":{"vocab":{}}})", "model: has no \"type\"; rapt has WordPiece and BPE"},
    {"NoVocabulary", R"({"model":{"type":"BPE","merges":[]}})", "model: has no \"vocab\""},
    {"VocabularyIsAnArray", R"({"model":{"type":"BPE","vocab":[],"merges":[]}})", "model.vocab: expected an object, found an array"},
    {"NegativeId", with({word_piece_model(R"({"[UNK]":-1})")}), "model.vocab: the id of \"[UNK]\" must be a whole number from 0 to 16777215"},
    {"HugeId", with({word_piece_model(R"({"[UNK]":2147483647})")}), "model.vocab: the id of \"[UNK]\" must be a whole number from 0 to 16777215"},
    {"HugerId", with({word_piece_model(R"({"[UNK]":18446744073709551615})")}), "model.vocab: the id of \"[UNK]\" must be a whole number from 0 to 16777215"},
    {"IdIsAString", with({word_piece_model(R"({"[UNK]":"1"})")}), "model.vocab: the id of \"[UNK]\" must be a whole number from 0 to 16777215"},
    {"IdIsAFraction", with({word_piece_model(R"({"[UNK]":1.5})")}), "model.vocab: the id of \"[UNK]\" must be a whole number from 0 to 16777215"},
    {"IdTwice", with({word_piece_model(R"({"[UNK]":1,"b":1})")}), "the id 1 appears twice, for \"[UNK]\" and for \"b\""},
    {"TokenTwice", with({word_piece_model(R"({"[UNK]":1,"\u0062":2,"b":3})")}), "the key \"b\" appears twice in an object"},
    {"NoUnknownToken", with({word_piece_model(R"({"a":0})")}), "the vocabulary does not have \"[UNK]\", the token of unknown words"},
    {"LongToken", with({word_piece_model("{\"" + std::string(8'000'000, 'a') + "\":0}")}), "the token \"" + std::string(60, 'a') + "…\" has 8000000 bytes; rapt reads tokens of up to 4096"},
    {"MostCharactersIsNegative", R"({"model":{"type":"WordPiece","unk_token":"a","continuing_subword_prefix":"","max_input_chars_per_word":-1,"vocab":{}}})", "model.max_input_chars_per_word: expected a number from 1 to 2147483648, found -1"},
    {"MergesAreAnObject", with({bpe_model(kWords, "{}")}), "model.merges: expected an array, found an object"},
    {"MergeOfOne", with({bpe_model(kWords, R"(["a"])")}), "merge 1 is \"a\"; expected two tokens with a space between them"},
    {"MergeOfThree", with({bpe_model(kWords, R"(["a b","a b a"])")}), "merge 2 is \"a b a\"; expected two tokens with a space between them"},
    {"MergeOfThreeInAnArray", with({bpe_model(kWords, R"([["a","b","a"]])")}), "model.merges[0]: expected two tokens"},
    {"MergeOfNumbers", with({bpe_model(kWords, R"([[1,2]])")}), "model.merges[0][0]: expected a string, found a whole number"},
    {"MergeOfUnknown", with({bpe_model(kWords, R"(["a b","a c"])")}), "merge 2 names the token \"c\", which is not in the vocabulary"},
    {"MergeIntoUnknown", with({bpe_model(kWords, R"(["b a"])")}), "merge 1 names the token \"ba\", which is not in the vocabulary"},
    {"UnknownTokenIsUnknown", with({bpe_model(kWords, "[]", R"("unk_token":"?",)")}), "the vocabulary does not have \"?\", the token of unknown characters"},
    {"Suffix", with({bpe_model(kWords, "[]", R"("end_of_word_suffix":"</w>",)")}), "model.end_of_word_suffix: is not supported in BPE; it must be empty or null"},
    {"Prefix", with({bpe_model(kWords, "[]", R"("continuing_subword_prefix":"##",)")}), "model.continuing_subword_prefix: is not supported in BPE; it must be empty or null"},
    {"Dropout", with({bpe_model(kWords, "[]", R"("dropout":0.1,)")}), "model.dropout: is for training; it must be 0 or null"},
    {"ByteFallback", with({bpe_model(kWords, "[]", R"("byte_fallback":true,)")}), "model.byte_fallback: is not supported; it must be false"},
    {"UnknownNormalizer", with({kModel, R"("normalizer":{"type":"Precompiled"})"}), "normalizer: the type \"Precompiled\" is not supported; rapt has BertNormalizer, Lowercase, NFC, NFD, NFKC, NFKD, Replace, Sequence, Strip and StripAccents"},
    {"UnknownNormalizerInASequence", with({kModel, R"("normalizer":{"type":"Sequence","normalizers":[{"type":"NFC"},{"type":"Nmt"}]})"}), "normalizer.normalizers[1]: the type \"Nmt\" is not supported; rapt has BertNormalizer, Lowercase, NFC, NFD, NFKC, NFKD, Replace, Sequence, Strip and StripAccents"},
    {"ReplaceByExpression", with({kModel, R"("normalizer":{"type":"Replace","pattern":{"Regex":" {2,}"},"content":" "})"}), "normalizer.pattern: only a pattern that is a \"String\" is supported, no regular expression"},
    {"ReplaceNothing", with({kModel, R"("normalizer":{"type":"Replace","pattern":{"String":""},"content":" "})"}), "normalizer.pattern.String: is empty"},
    {"Metaspace", with({kModel, R"("pre_tokenizer":{"type":"Metaspace"})"}), "pre_tokenizer: the type \"Metaspace\" is not supported; rapt has BertPreTokenizer, ByteLevel, Sequence, Whitespace and WhitespaceSplit"},
    {"SplitAfterByteLevel", with({kModel, R"("pre_tokenizer":{"type":"Sequence","pretokenizers":[{"type":"ByteLevel","add_prefix_space":false},{"type":"Whitespace"}]})"}), "pre_tokenizer.pretokenizers[1]: follows ByteLevel, which must be the last step"},
    {"UnknownPostProcessor", with({kModel, R"("post_processor":{"type":"Other"})"}), "post_processor: the type \"Other\" is not supported; rapt has BertProcessing, ByteLevel, RobertaProcessing, Sequence and TemplateProcessing"},
    {"TemplateWithoutText", with({kModel, R"("post_processor":{"type":"TemplateProcessing","single":[],"special_tokens":{}})"}), "post_processor.single: a template for one text must have the sequence A"},
    {"TemplateWithTwoTexts", with({kModel, R"("post_processor":{"type":"TemplateProcessing","single":[{"Sequence":{"id":"A"}},{"Sequence":{"id":"B"}}],"special_tokens":{}})"}), "post_processor.single[1]: a template for one text must have the sequence A once, and no other"},
    {"TemplateOfUnknown", with({kModel, R"("post_processor":{"type":"TemplateProcessing","single":[{"SpecialToken":{"id":"[X]"}}],"special_tokens":{}})"}), "post_processor.special_tokens: has no \"[X]\""},
    {"PostProcessorAddsUnknownId", with({kModel, R"("post_processor":{"type":"BertProcessing","sep":["[SEP]",102],"cls":["[CLS]",1]})"}), "the post-processor adds the id 102, which is not in the vocabulary"},
    {"UnknownDecoder", with({kModel, R"("decoder":{"type":"Fuse"})"}), "decoder: the type \"Fuse\" is not supported; rapt has ByteLevel and WordPiece"},
    {"AddedTokenWithAnotherId", with({kModel, R"("added_tokens":[{"id":7,"content":"[SEP]","normalized":false}])"}), "added_tokens[0]: \"[SEP]\" has the id 7, and 2 in the vocabulary"},
    {"AddedTokenFarAway", with({kModel, R"("added_tokens":[{"id":16000000,"content":"x","normalized":false}])"}), "added_tokens[0]: \"x\" has the id 16000000, and 6 by its place after the vocabulary"},
    {"AddedTokenTwice", with({kModel, R"("added_tokens":[{"id":6,"content":"x","normalized":false},{"id":6,"content":"x","normalized":true}])"}), "added_tokens[1]: the content \"x\" appears twice"},
    {"AddedTokenInAHole", with({word_piece_model(R"({"[UNK]":0,"a":2})"), R"("added_tokens":[{"id":2,"content":"x","normalized":false}])"}), "added_tokens[0]: the id 2 is also that of \"a\""},
    {"AddedTokenIsEmpty", with({kModel, R"("added_tokens":[{"id":6,"content":"","normalized":false}])"}), "the added token \"\" is empty"},
    {"AddedTokenIsNormalizedAway", with({kModel, R"("normalizer":{"type":"StripAccents"},"added_tokens":[{"id":6,"content":"\u0301","normalized":true}])"}), "the added token \"\u0301\" is empty after the normalizer"},
};
// clang-format on

TEST(BrokenTokenizer, IsRejectedWithAMessage) {
  for (const Broken& each : kBroken) {
    SCOPED_TRACE(each.name);
    const std::string start = std::string(each.name) == "PostProcessorAddsUnknownId" ? "" : "tokenizer.json: ";
    expect_error([&] { (void)tokenizer_of(each.json); }, "tokenizer: model: " + start + each.message);
  }
}

TEST(BrokenTokenizer, CutAnywhereIsRejected) {
  const std::string whole = json_of({kBert, kBertTemplate, kModel});
  EXPECT_EQ(refusal([&] { (void)tokenizer_of(whole); }), "");
  for (std::size_t size = 0; size < whole.size(); ++size) {
    EXPECT_NE(refusal([&] { (void)tokenizer_of(whole.substr(0, size)); }), "") << size;
  }
}

TEST(BrokenTokenizer, EveryByteChangedIsReadOrRejected) {
  const std::string whole = json_of({kBert, kBertTemplate, kModel});
  int rejected = 0;
  for (std::size_t at = 0; at < whole.size(); ++at) {
    for (const char c : {'\0', '"', '{', '9', '\xff'}) {
      std::string changed = whole;
      changed[at] = c;
      rejected += refusal([&] { (void)tokenizer_of(changed).encode("ab a b"); }).empty() ? 0 : 1;
    }
  }
  EXPECT_GT(rejected, 1000);
}

TEST(BrokenTokenizer, TooManyValuesAreRejected) {
  const std::string many = "[" + std::string(2 * models::kMostJsonValues, '1') + "]";
  EXPECT_NE(refusal([&] { (void)models::parse_json(many, ""); }), "");  // one long number
  std::string list = "[";
  for (std::size_t i = 0; i <= models::kMostJsonValues; ++i) list += "1,";
  expect_error([&] { (void)models::parse_json(list, "file: "); }, "file: has more than 4194304 values");
}

TEST(BrokenTokenizer, FoldersWithoutATokenizerSayWhatIsThere) {
  const auto message = [](const std::vector<Named>& files) {
    return refusal([&] { (void)models::Tokenizer::read(model_files(files)); });
  };
  EXPECT_EQ(message({}),
            "tokenizer: model: there is no tokenizer.json, no vocab.txt, and no vocab.json with merges.txt");
  EXPECT_EQ(message({{"vocab.json", "{}"}}),
            "tokenizer: model: there is no tokenizer.json, no vocab.txt, and no vocab.json with merges.txt");
  EXPECT_EQ(message({{"tokenizer.model", "x"}}),
            "tokenizer: model: tokenizer.model is a model of SentencePiece, which rapt does not have; rapt reads "
            "tokenizer.json with WordPiece or BPE");
  EXPECT_EQ(message({{"vocab.txt", "[UNK]\n[CLS]\n"}}),
            "tokenizer: model: vocab.txt: the vocabulary does not have \"[SEP]\", the sep_token");
  EXPECT_EQ(message({{"vocab.txt", "[UNK]\n\xff\n"}}), "tokenizer: model: vocab.txt: line 2 is not UTF-8: \"\\xff\"");
  EXPECT_EQ(message({{"vocab.txt", "[UNK]\na\na\n"}}),
            "tokenizer: model: vocab.txt: the token \"a\" appears twice, as 1 and as 2");
  EXPECT_EQ(message({{"vocab.txt", "[UNK]\n"}, {"tokenizer_config.json", R"({"tokenizer_class":"MPNetTokenizer"})"}}),
            "tokenizer: model: tokenizer_config.json: tokenizer_class: \"MPNetTokenizer\" is not supported without a "
            "tokenizer.json; rapt has BertTokenizer");
  EXPECT_EQ(message({{"vocab.json", R"({"a":0})"}, {"merges.txt", "a b\n"}}),
            "tokenizer: model: merges.txt: merge 1 names the token \"b\", which is not in the vocabulary");
}

}  // namespace
}  // namespace rapt::test
