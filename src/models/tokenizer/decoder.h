// The decoder: joins tokens to a text.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace rapt::models {

struct Decoder {
  enum class Kind : std::uint8_t {
    spaces,      // a space between two tokens: tokenizers without a decoder
    word_piece,  // a space between two words, none before a continuation
    byte_level,  // the bytes of the byte-level alphabet
  };

  Kind kind = Kind::spaces;
  std::string prefix = "##";  // of continuations
  bool cleans_up = true;      // no space before punctuation and English contractions

  std::string text_of(const std::vector<std::string>& tokens) const;
};

}  // namespace rapt::models
