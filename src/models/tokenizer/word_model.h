// The part of a tokenizer that splits a word into tokens of the vocabulary.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "models/tokenizer/vocabulary.h"

namespace rapt::models {

// A token for the bytes [begin, end) of a word.
struct WordPart {
  std::int32_t id = 0;
  std::size_t begin = 0, end = 0;
};

class WordModel {
 public:
  explicit WordModel(Vocabulary vocabulary) : vocabulary_(std::move(vocabulary)) {}
  WordModel(const WordModel&) = delete;
  WordModel& operator=(const WordModel&) = delete;
  virtual ~WordModel() = default;

  const Vocabulary& vocabulary() const { return vocabulary_; }
  // Appends the tokens of a word, which is not empty.
  virtual void split(std::string_view word, std::vector<WordPart>& parts) const = 0;

 private:
  Vocabulary vocabulary_;
};

}  // namespace rapt::models
