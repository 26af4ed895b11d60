// The pre-tokenizer: steps that split a text into words.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "models/tokenizer/aligned_text.h"

namespace rapt::models {

enum class SplitStep : std::uint8_t {
  bert,   // at white space, and each punctuation character is a word
  words,  // words of \w, and what is between them without white space
  white_space,
};

struct PreTokenizer {
  std::vector<SplitStep> steps = {};
  // Byte-level BPE, after the steps.
  bool byte_level = false;
  bool adds_space = false;  // in front of a text that does not start with one
  bool splits_as_gpt2 = false;

  // Calls each(word, begin, end) for each word: the bytes [begin, end) of a text.
  using Each = std::function<void(const AlignedText& word, std::size_t begin, std::size_t end)>;
  void split(const AlignedText& text, std::size_t begin, std::size_t end, const Each& each) const;
};

}  // namespace rapt::models
