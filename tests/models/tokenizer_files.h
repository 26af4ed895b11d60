// Small tokenizers for tests, as the text of their files.
#pragma once

#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/text.h"
#include "models/files.h"
#include "models/tokenizer.h"

namespace rapt::test {

using Named = std::pair<std::string_view, std::string>;  // a file: its name and its text

inline models::ModelFiles model_files(const std::vector<Named>& named) {
  models::ModelFiles files;
  files.set_where("model");
  for (const auto& [name, content] : named) files.add(std::string(name), std::as_bytes(std::span(content)));
  return files;
}

inline models::Tokenizer tokenizer_of(const std::string& json) {
  return models::Tokenizer::read(model_files({{"tokenizer.json", json}}));
}

// The entry "vocab" with these tokens, numbered from 0 on.
inline std::string vocabulary_of(std::initializer_list<std::string_view> tokens) {
  std::string entry;
  int id = 0;
  for (const std::string_view token : tokens) entry += text(id == 0 ? "" : ",", '"', token, "\":", id), ++id;
  return "{" + entry + "}";
}

inline constexpr std::string_view kBert =
    R"("normalizer":{"type":"BertNormalizer","clean_text":true,"handle_chinese_chars":true,"strip_accents":null,)"
    R"("lowercase":true},"pre_tokenizer":{"type":"BertPreTokenizer"},"decoder":{"type":"WordPiece","prefix":"##",)"
    R"("cleanup":true})";
inline constexpr std::string_view kBertTemplate =
    R"("post_processor":{"type":"TemplateProcessing","single":[{"SpecialToken":{"id":"[CLS]","type_id":0}},)"
    R"({"Sequence":{"id":"A","type_id":0}},{"SpecialToken":{"id":"[SEP]","type_id":0}}],"pair":[],"special_tokens":)"
    R"({"[CLS]":{"id":"[CLS]","ids":[1],"tokens":["[CLS]"]},"[SEP]":{"id":"[SEP]","ids":[2],"tokens":["[SEP]"]}}})";
inline constexpr std::string_view kByteLevel =
    R"("pre_tokenizer":{"type":"ByteLevel","add_prefix_space":false,"trim_offsets":true},)"
    R"("decoder":{"type":"ByteLevel","add_prefix_space":false,"trim_offsets":true})";

inline std::string word_piece_model(const std::string& vocabulary) {
  return R"("model":{"type":"WordPiece","unk_token":"[UNK]","continuing_subword_prefix":"##",)"
         R"("max_input_chars_per_word":100,"vocab":)" +
         vocabulary + "}";
}

inline std::string bpe_model(const std::string& vocabulary, const std::string& merges, const std::string& more = "") {
  return R"("model":{"type":"BPE",)" + more + R"("vocab":)" + vocabulary + R"(,"merges":)" + merges + "}";
}

// The entries of a file.
inline std::string json_of(std::initializer_list<std::string_view> entries) {
  std::string all;
  for (const std::string_view entry : entries) all += text(all.empty() ? "" : ",", entry);
  return "{" + all + "}";
}

// "1:[CLS]@0-0 7:the@0-3": ids, texts and bytes.
inline std::string shown(const std::vector<models::Token>& tokens) {
  std::string line;
  for (const models::Token& token : tokens) {
    line += text(line.empty() ? "" : " ", token.id, ':', token.text, '@', token.begin, '-', token.end);
  }
  return line;
}

}  // namespace rapt::test
