// Byte-level BPE as GPT-2 and RoBERTa use it. The expected tokens follow from the rules; bindings/python/interop/
// test_tokenizers.py compares thousands of texts with tokenizers itself.
#include <chrono>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "core/utf8.h"
#include "models/tokenizer/byte_level.h"
#include "models/tokenizer_files.h"
#include "support/expect_error.h"

namespace rapt::test {
namespace {

using models::Tokenizer;

// The 256 characters of the alphabet, with the ids of their bytes, then these tokens from 256 on.
std::string byte_vocabulary(std::initializer_list<std::string_view> more) {
  std::string entry;
  for (int byte = 0; byte < 256; ++byte) {
    const std::string character = to_utf8(models::byte_level_character(static_cast<unsigned char>(byte)));
    entry +=
        text(byte == 0 ? "{\"" : ",\"", character == "\"" || character == "\\" ? "\\" : "", character, "\":", byte);
  }
  int id = 256;
  for (const std::string_view token : more) entry += text(",\"", token, "\":", id++);
  return entry + "}";
}

std::string gpt2_model() {
  return bpe_model(byte_vocabulary({"th", "the", "Ġthe", "Ġt", "an", "Ġth", "<|endoftext|>"}),
                   R"(["t h","th e","Ġ t",["Ġt","h"],"Ġth e","a n"])");
}
constexpr std::string_view kEnd =
    R"("added_tokens":[{"id":262,"content":"<|endoftext|>","normalized":false,"special":true}])";

Tokenizer gpt2() { return tokenizer_of(json_of({kByteLevel, kEnd, gpt2_model()})); }

TEST(ByteBpe, MergesTheFirstPairOfTheListFirst) {
  EXPECT_EQ(shown(gpt2().encode("the than")), "257:the@0-3 32: @3-4 256:th@4-6 260:an@6-8");
  // " the" is a token, but "t h" comes before "Ġ t".
  EXPECT_EQ(shown(gpt2().encode(" the")), "32: @0-1 257:the@1-4");
}

TEST(ByteBpe, IgnoreMergesTakesAWholeWord) {
  const std::string model =
      bpe_model(byte_vocabulary({"th", "the", "Ġthe"}), R"(["t h","th e"])", R"("ignore_merges":true,)");
  EXPECT_EQ(shown(tokenizer_of(json_of({kByteLevel, model})).encode("the the them")),
            "257:the@0-3 258: the@3-7 32: @7-8 257:the@8-11 109:m@11-12");
}

TEST(ByteBpe, BytesOfACharacterStandForAllOfIt) {
  EXPECT_EQ(shown(gpt2().encode("é")), "195:\uFFFD@0-2 169:\uFFFD@0-2");
  EXPECT_EQ(gpt2().decode(std::vector<std::int32_t>{195, 169}), "é");
  EXPECT_EQ(gpt2().decode(std::vector<std::int32_t>{195, 97, 226, 130}), "\uFFFDa\uFFFD");
}

TEST(ByteBpe, SplitsTextLikeTheExpressionOfGpt2) {
  const auto parts = [](std::string_view text) {
    std::string all;
    models::split_as_gpt2(text, [&](std::size_t begin, std::size_t end) {
      all += (all.empty() ? "" : "|") + std::string(text.substr(begin, end - begin));
    });
    return all;
  };
  EXPECT_EQ(parts(""), "");
  EXPECT_EQ(parts("it's we'll'd 'VE"), "it|'s| we|'ll|'d| '|VE");
  EXPECT_EQ(parts("a1b22 33x"), "a|1|b|22| 33|x");
  EXPECT_EQ(parts("Hi!!  \n there"), "Hi|!!|  \n| there");
  EXPECT_EQ(parts("a \t\n"), "a| \t\n");
  EXPECT_EQ(parts("a\tb\u00a0\u00a0c \u3000d"), "a|\t|b|\u00a0|\u00a0|c| |\u3000|d");
  EXPECT_EQ(parts("नमस्ते"), "नमस|्|त|े");  // marks are no letters
  EXPECT_EQ(parts("½²x ٣"), "½²|x| ٣");
}

TEST(ByteBpe, APrefixSpaceBelongsToTheFirstCharacter) {
  const std::string_view steps =
      R"("pre_tokenizer":{"type":"ByteLevel","add_prefix_space":true,"trim_offsets":true},"decoder":{"type":"ByteLevel"})";
  const auto tokens = [&](const std::string& post, const std::string& input) {
    return shown(tokenizer_of(json_of({steps, post, gpt2_model()})).encode(input));
  };
  const std::string none = R"("post_processor":null)";
  EXPECT_EQ(tokens(none, "the the"), "32: @0-1 257:the@0-3 32: @3-4 257:the@4-7");
  EXPECT_EQ(tokens(none, " the"), "32: @0-1 257:the@1-4");
  EXPECT_EQ(tokens(none, ""), "");
  // Trimming leaves the first space alone, which may be the added one.
  const std::string trims = R"("post_processor":{"type":"ByteLevel","add_prefix_space":true,"trim_offsets":true})";
  EXPECT_EQ(tokens(trims, "the the"), "32: @0-0 257:the@0-3 32: @4-4 257:the@4-7");
}

TEST(ByteBpe, RobertaWrapsATextAndTrimsSpaces) {
  const std::string model = bpe_model(byte_vocabulary({"<s>", "</s>", "<mask>", "Ġc"}), R"(["Ġ c"])");
  const std::string_view post =
      R"("post_processor":{"type":"RobertaProcessing","sep":["</s>",257],"cls":["<s>",256],"trim_offsets":true,)"
      R"("add_prefix_space":false},"added_tokens":[{"id":258,"content":"<mask>","lstrip":true,"rstrip":false,)"
      R"("normalized":false,"special":true}])";
  const Tokenizer tokenizer = tokenizer_of(json_of({kByteLevel, post, model}));
  EXPECT_EQ(shown(tokenizer.encode("a c \u3000<mask>")),
            "256:<s>@0-0 97:a@0-1 259: c@2-3 258:<mask>@7-13 257:</s>@0-0");
  EXPECT_EQ(shown(tokenizer.encode("a", false)), "97:a@0-1");
  EXPECT_TRUE(tokenizer.encode("").back().special);
  EXPECT_EQ(tokenizer.decode(std::vector<std::int32_t>{97, 259, 258}), "a c");
}

TEST(ByteBpe, UnknownCharactersAreUnknownTokensOrLeftOut) {
  const auto tokens = [](const std::string& options) {
    const std::string model = bpe_model(vocabulary_of({"?", "a", "aa"}), R"(["a a"])", options);
    return shown(tokenizer_of(json_of({model})).encode("aa中éa"));
  };
  EXPECT_EQ(tokens(R"("unk_token":"?",)"), "2:aa@0-2 0:?@2-5 0:?@5-7 1:a@7-8");
  EXPECT_EQ(tokens(R"("unk_token":"?","fuse_unk":true,)"), "2:aa@0-2 0:?@2-7 1:a@7-8");
  // As in tokenizers, the place of what follows is then wrong, and what is now adjacent is merged.
  EXPECT_EQ(tokens(""), "2:aa@0-2 1:a@2-5");
}

TEST(ByteBpe, ReadsVocabJsonAndMergesTxt) {
  const std::string merges = "#version: 0.2\nt h\r\nth e\n";
  const auto tokens = [&](const std::string& vocabulary, const std::string& config, const std::string& input) {
    return shown(
        Tokenizer::read(
            model_files({{"vocab.json", vocabulary}, {"merges.txt", merges}, {"tokenizer_config.json", config}}))
            .encode(input));
  };
  const std::string gpt2 = byte_vocabulary({"th", "the", "<|endoftext|>"});
  EXPECT_EQ(tokens(gpt2, "{}", "the<|endoftext|>"), "257:the@0-3 258:<|endoftext|>@3-16");
  EXPECT_EQ(tokens(gpt2, R"({"add_prefix_space":true})", "the"), "32: @0-1 257:the@0-3");
  const std::string roberta = byte_vocabulary({"th", "the", "<s>", "</s>", "<mask>"});
  EXPECT_EQ(tokens(roberta, "{}", "the  <mask>"), "258:<s>@0-0 257:the@0-3 260:<mask>@5-11 259:</s>@0-0");
  EXPECT_EQ(tokens(roberta, R"({"tokenizer_class":"GPT2Tokenizer"})", "the"), "257:the@0-3");
}

TEST(ByteBpe, ALongWordTakesNoQuadraticTime) {
  const std::string model = bpe_model(byte_vocabulary({"aa", "aaaa", "aaaaaaaa"}), R"(["a a","aa aa","aaaa aaaa"])");
  const Tokenizer tokenizer = tokenizer_of(json_of({kByteLevel, model}));
  constexpr std::size_t kBytes = 300'001;  // a quadratic method would take minutes
  const auto start = std::chrono::steady_clock::now();
  const std::vector<models::Token> tokens = tokenizer.encode(std::string(kBytes, 'a'));
  EXPECT_EQ(tokens.size(), kBytes / 8 + 1);
  EXPECT_EQ(tokens.back().end, kBytes);
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(60));
}

TEST(ByteBpe, BrokenUtf8BecomesReplacementCharacters) {
  using std::string_view_literals::operator""sv;
  EXPECT_EQ(models::valid_utf8("a\xE2\x82z"), "a\uFFFDz");
  EXPECT_EQ(models::valid_utf8("\xF0\x9F\x98"), "\uFFFD");
  EXPECT_EQ(models::valid_utf8("\xF0\x80\x80"), "\uFFFD\uFFFD\uFFFD");
  EXPECT_EQ(models::valid_utf8("\xED\xA0\x80"), "\uFFFD\uFFFD\uFFFD");
  EXPECT_EQ(models::valid_utf8("\xC0\xAF\xFF"), "\uFFFD\uFFFD\uFFFD");
  EXPECT_EQ(models::valid_utf8("é\0x"sv), "é\0x"sv);
}

}  // namespace
}  // namespace rapt::test
