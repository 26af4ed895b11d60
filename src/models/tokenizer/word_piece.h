// WordPiece: a word is its longest beginning in the vocabulary, followed by the longest continuations ("##ing"). A word
// that cannot be split like this is one unknown token.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "models/tokenizer/vocabulary.h"
#include "models/tokenizer/word_model.h"

namespace rapt::models {

struct WordPieceOptions {
  std::string unknown = "[UNK]";
  std::string prefix = "##";           // of continuations
  std::int64_t most_characters = 100;  // of a word; a longer one is unknown
};

class WordPiece : public WordModel {
 public:
  // Throws FileError if the vocabulary does not have the unknown token; `where` starts the message.
  WordPiece(Vocabulary vocabulary, const WordPieceOptions& options, const std::string& where);

  void split(std::string_view word, std::vector<WordPart>& parts) const override;

 private:
  std::int32_t unknown_ = 0;
  std::int64_t most_characters_ = 0;
  Vocabulary continuations_;  // without their prefix
};

}  // namespace rapt::models
