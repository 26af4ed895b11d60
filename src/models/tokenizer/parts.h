// The parts of a tokenizer, and the files that they are read from.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "models/tokenizer/added_tokens.h"
#include "models/tokenizer/decoder.h"
#include "models/tokenizer/json_value.h"
#include "models/tokenizer/normalizer.h"
#include "models/tokenizer/pre_tokenizer.h"
#include "models/tokenizer/word_model.h"

namespace rapt::models {

class ModelFiles;

// What happens to the tokens of a text at the end.
struct PostStep {
  enum class Kind : std::uint8_t {
    trim,  // white space at the start and the end of a token is not part of what it stands for
    wrap,  // special tokens before and after the text
  };

  Kind kind = Kind::wrap;
  bool keeps_first_space = false;                     // trim: the space that the pre-tokenizer added
  std::vector<std::int32_t> before = {}, after = {};  // wrap
};

struct TokenizerParts {
  AddedTokens added;
  Normalizer normalizer;
  PreTokenizer pre_tokenizer;
  std::unique_ptr<WordModel> model;
  std::vector<PostStep> post;
  Decoder decoder;
};

// tokenizer.json: the whole tokenizer.
TokenizerParts read_tokenizer_json(const ModelFiles& files);
// vocab.txt: a tokenizer of BERT, with what tokenizer_config.json says.
TokenizerParts read_bert_vocabulary(const ModelFiles& files);
// vocab.json and merges.txt: a tokenizer of GPT-2 or RoBERTa, with what tokenizer_config.json says.
TokenizerParts read_bpe_vocabulary(const ModelFiles& files);

// What messages about a file start with.
std::string where_of(const ModelFiles& files, const char* name);

// Entries of tokenizer.json. Each throws FileError for a type that rapt does not have, and lists those that it has.
Normalizer read_normalizer(const JsonEntry& entry);
PreTokenizer read_pre_tokenizer(const JsonEntry& entry);
std::vector<PostStep> read_post_processor(const JsonEntry& entry);
Decoder read_decoder(const JsonEntry& entry);
// Tokens and their ids, of vocab.json or of the entry "vocab".
Vocabulary read_vocabulary(const JsonEntry& entry, const std::string& where);
// A merge as a line: "a b".
std::pair<std::string, std::string> read_merge(const std::string& line, std::size_t number, const std::string& where);

}  // namespace rapt::models
