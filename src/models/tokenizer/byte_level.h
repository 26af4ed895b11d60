// The byte-level alphabet of GPT-2: each of the 256 bytes is written as one visible character, so that a vocabulary of
// text can hold any bytes. ' ' is U+0120.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace rapt::models {

char32_t byte_level_character(unsigned char byte);

// The bytes that a token of the alphabet stands for; if it has another character, its own bytes.
std::string bytes_of_token(std::string_view token);

// Well-formed UTF-8: each longest beginning of a character that is not completed becomes U+FFFD, and so does each byte
// that starts none.
std::string valid_utf8(std::string_view bytes);

// The end of the part of split_as_gpt2 that starts at `begin`.
std::size_t gpt2_part_end(std::string_view text, std::size_t begin);

// Splits a text as GPT-2 does, into words with the space before them, numbers, other characters and white space: calls
// each(begin, end) for the parts, which cover the text.
//   's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
template <class Each>
void split_as_gpt2(std::string_view text, const Each& each) {
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = gpt2_part_end(text, begin);
    each(begin, end);
    begin = end;
  }
}

}  // namespace rapt::models
