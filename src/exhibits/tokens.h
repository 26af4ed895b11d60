// Splits a text into tokens: words at spaces; each punctuation mark and Chinese or Japanese character is a token.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace rapt::exhibits {

struct Sentence {
  std::vector<std::string> tokens;  // as written
  std::vector<std::int64_t> ids;    // equal for equal words, from 0 by first appearance; "The" equals "the"
  std::int64_t length() const { return static_cast<std::int64_t>(tokens.size()); }
};

Sentence tokenize(std::string_view text);

}  // namespace rapt::exhibits
