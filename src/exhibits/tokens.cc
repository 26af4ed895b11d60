#include "exhibits/tokens.h"

#include <algorithm>
#include <map>

#include "exhibits/text.h"

namespace rapt::exhibits {
namespace {

bool is_space(char32_t c) {
  // Control characters count as space: they would otherwise reach the terminal.
  return c <= 0x20 || (c >= 0x7F && c <= 0xA0) || c == 0x3000 || (c >= 0x2000 && c <= 0x200A) ||
         (c >= 0x2028 && c <= 0x202E) || (c >= 0x2066 && c <= 0x2069) || c == 0xFEFF;
}

bool is_ascii_letter_or_digit(char32_t c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

// Characters that are tokens by themselves. Korean is written in words, so Hangul is not included.
bool stands_alone(char32_t c) {
  if (c < 0x80) return !is_ascii_letter_or_digit(c);
  return (c >= 0x2E80 && c <= 0x33FF) || (c >= 0x3400 && c <= 0x9FFF) || (c >= 0xF900 && c <= 0xFAFF) ||
         (c >= 0xFE30 && c <= 0xFE6F) || (c >= 0xFF00 && c <= 0xFF60) || (c >= 0x20000 && c <= 0x3FFFD);
}

bool joins_words(char32_t c) { return c == '\'' || c == '-' || c == '_'; }  // it's, well-known, split_heads

std::string lower(std::string_view word) {
  std::string result(word);
  std::transform(result.begin(), result.end(), result.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; });
  return result;
}

}  // namespace

Sentence tokenize(std::string_view text) {
  Sentence sentence;
  bool open = false;  // may the next character join the last token?
  for (std::size_t at = 0; at < text.size();) {
    const char32_t c = next_code_point(text, at);
    if (is_space(c)) {
      open = false;
      continue;
    }
    std::size_t after = at;
    const char32_t next = after < text.size() ? next_code_point(text, after) : U' ';
    const bool inside = open && joins_words(c) && !is_space(next) && !stands_alone(next);
    const bool alone = stands_alone(c) && !inside;
    const bool mark = columns(c) == 0;  // belongs to the previous character, whatever that is
    if (!sentence.tokens.empty() && (mark || (open && !alone))) {
      sentence.tokens.back() += to_utf8(c);
    } else {
      sentence.tokens.push_back(to_utf8(c));
    }
    if (!mark) open = !alone;
  }

  std::map<std::string, std::int64_t> vocabulary;
  for (const std::string& token : sentence.tokens) {
    const auto next_id = static_cast<std::int64_t>(vocabulary.size());
    sentence.ids.push_back(vocabulary.try_emplace(lower(token), next_id).first->second);
  }
  return sentence;
}

}  // namespace rapt::exhibits
