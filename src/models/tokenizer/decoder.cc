#include "models/tokenizer/decoder.h"

#include <array>
#include <cstddef>
#include <string_view>
#include <utility>

#include "models/tokenizer/byte_level.h"

namespace rapt::models {
namespace {

void replace_all(std::string& text, std::string_view old, std::string_view by) {
  for (std::size_t at = text.find(old); at != std::string::npos; at = text.find(old, at + by.size())) {
    text.replace(at, old.size(), by);
  }
}

// The order is that of tokenizers; each replacement sees what those before it left.
void clean_up(std::string& text) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 11> kReplacements{{{" .", "."},
                                                                                         {" ?", "?"},
                                                                                         {" !", "!"},
                                                                                         {" ,", ","},
                                                                                         {" ' ", "'"},
                                                                                         {" n't", "n't"},
                                                                                         {" 'm", "'m"},
                                                                                         {" do not", " don't"},
                                                                                         {" 's", "'s"},
                                                                                         {" 've", "'ve"},
                                                                                         {" 're", "'re"}}};
  for (const auto& [old, by] : kReplacements) replace_all(text, old, by);
}

}  // namespace

std::string Decoder::text_of(const std::vector<std::string>& tokens) const {
  std::string text;
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    const std::string& token = tokens[i];
    switch (kind) {
      case Kind::spaces: text += i == 0 ? token : " " + token; break;
      case Kind::byte_level: text += bytes_of_token(token); break;
      case Kind::word_piece: {
        std::string piece = token;
        if (i > 0) piece = token.starts_with(prefix) ? token.substr(prefix.size()) : " " + token;
        if (cleans_up) clean_up(piece);
        text += piece;
        break;
      }
    }
  }
  return kind == Kind::byte_level ? valid_utf8(text) : text;
}

}  // namespace rapt::models
