// Tokens that are found in the text before it is split into words: special ones such as [MASK], and those that a user
// added to a vocabulary.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "models/tokenizer/normalizer.h"
#include "models/tokenizer/vocabulary.h"

namespace rapt::models {

struct AddedToken {
  std::string content;
  std::int32_t id = 0;
  bool single_word = false;  // not inside a word
  bool lstrip = false;       // takes the white space before it
  bool rstrip = false;       // takes the white space after it
  bool normalized = true;    // is found in the text that the normalizer made
  bool special = false;      // is left out in decoding
};

class AddedTokens {
 public:
  // A part of a text: an added token, or what is between two of them.
  struct Part {
    const AddedToken* token = nullptr;  // nullptr: no added token
    std::size_t begin = 0, end = 0;
  };

  AddedTokens() = default;
  // Throws FileError if a token is empty or appears twice, or one that the normalizer changes is then empty or equal to
  // another one; `where` starts the message.
  AddedTokens(std::vector<AddedToken> tokens, const Normalizer& normalizer, const std::string& where);

  const AddedToken* find(std::int32_t id) const;
  // What decoding has for a token: its content, as the normalizer leaves it.
  const std::string& decoded(const AddedToken& token) const;
  bool is_special(std::string_view content) const;
  std::int32_t largest_id() const;

  // The parts of a text, in their order. `normalized` selects the tokens that are found.
  std::vector<Part> split(std::string_view text, bool normalized) const;

 private:
  Vocabulary patterns_[2];                       // by `normalized`; the numbers of tokens in tokens_
  std::vector<AddedToken> tokens_;               // in the order of their ids
  std::map<std::int32_t, std::string> decoded_;  // by id, where it is not the content
};

}  // namespace rapt::models
