// Byte pair encoding: a word is its characters, of which neighbours are merged, always the pair that comes first in the
// list of merges. In byte-level BPE, the characters are those of the byte-level alphabet (byte_level.h).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "models/tokenizer/vocabulary.h"
#include "models/tokenizer/word_model.h"

namespace rapt::models {

struct ByteBpeOptions {
  std::string unknown;         // the token of unknown characters; if empty, they are left out
  bool fuses_unknown = false;  // neighbouring unknown characters are one token
  bool words_first = false;    // a word of the vocabulary is one token, whatever the merges
};

class ByteBpe : public WordModel {
 public:
  using Merges = std::vector<std::pair<std::string, std::string>>;

  // Throws FileError if a merge or `unknown` is not of the vocabulary; `where` starts the message.
  ByteBpe(Vocabulary vocabulary, const Merges& merges, const ByteBpeOptions& options, const std::string& where);

  void split(std::string_view word, std::vector<WordPart>& parts) const override;

 private:
  struct Merge {
    std::uint32_t rank = 0;
    std::int32_t merged = 0;
  };
  // Ids are consecutive numbers, so their bits are mixed.
  struct Mix {
    std::size_t operator()(std::uint64_t key) const {
      key = (key ^ (key >> 33U)) * 0x9E3779B97F4A7C15U;
      return static_cast<std::size_t>(key ^ (key >> 29U));
    }
  };
  // The characters of a word as symbols; -1 ends the list.
  struct Symbol {
    std::int32_t id = 0;
    std::int32_t before = -1, after = -1;
    std::uint32_t bytes = 0;  // 0: it was merged into the one before
  };
  struct Candidate;

  std::int32_t id_of_character(std::string_view character) const;
  std::vector<Symbol> symbols_of(std::string_view word) const;
  const Merge* find(std::int32_t first, std::int32_t second) const;
  void merge(std::vector<Symbol>& symbols) const;

  ByteBpeOptions options_;
  std::int32_t unknown_ = -1;
  std::unordered_map<std::uint64_t, Merge, Mix> merges_;  // by both ids
  std::array<std::int32_t, 0x200> characters_{};          // the ids of the first characters; -1: none
};

}  // namespace rapt::models
