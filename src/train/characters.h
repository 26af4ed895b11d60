// A vocabulary of characters: token n is the n-th character.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace rapt::train {

class Characters {
 public:
  // `all` holds the characters, each once, in UTF-8; errors call it `name`.
  explicit Characters(std::string_view all, const std::string& name = "characters");
  // The characters of a text, each once, ordered by code point.
  static Characters of(std::u32string_view text);

  std::int64_t size() const { return static_cast<std::int64_t>(list_.size()); }
  const std::string& all() const { return all_; }
  bool contains(char32_t character) const { return tokens_.contains(character); }

  // Throws if `text` contains a character outside the vocabulary.
  std::vector<std::int32_t> encode(std::string_view text) const;
  std::vector<std::int32_t> encode(std::u32string_view text) const;
  const std::string& operator[](std::int32_t token) const { return list_[static_cast<std::size_t>(token)]; }
  std::string decode(std::span<const std::int32_t> tokens) const;

 private:
  std::string all_;
  std::vector<std::string> list_;
  std::map<char32_t, std::int32_t> tokens_;
};

// The code points of UTF-8. Throws on a byte that is not UTF-8 or is 0, as in a binary file, and names its offset.
std::u32string code_points(std::string_view text, const std::string& name);

}  // namespace rapt::train
