#include "train/characters.h"

#include <cstddef>
#include <set>

#include "core/utf8.h"
#include "rapt/error.h"

namespace rapt::train {

std::u32string code_points(std::string_view text, const std::string& name) {
  std::u32string points;
  points.reserve(text.size());
  for (std::size_t at = 0; at < text.size();) {
    const CodePoint next = first_code_point(text.substr(at));
    if (next.bytes == 0 || next.value == 0) {
      throw Error(name + " is not a text file: byte " + std::to_string(at) +
                  (next.bytes == 0 ? " is not UTF-8" : " is 0, as in a binary file") + "; give a file of UTF-8 text");
    }
    points.push_back(next.value);
    at += next.bytes;
  }
  return points;
}

Characters::Characters(std::string_view all, const std::string& name) : all_(all) {
  for (const char32_t point : code_points(all, name)) {
    if (!tokens_.emplace(point, static_cast<std::int32_t>(list_.size())).second) {
      throw Error(name + " holds \"" + to_utf8(point) + "\" twice; each character is one token");
    }
    list_.push_back(to_utf8(point));
  }
}

Characters Characters::of(std::u32string_view text) {
  std::string all;
  for (const char32_t point : std::set<char32_t>(text.begin(), text.end())) all += to_utf8(point);
  return Characters(all);
}

std::vector<std::int32_t> Characters::encode(std::string_view text) const {
  return encode(code_points(text, "the prompt"));
}

std::vector<std::int32_t> Characters::encode(std::u32string_view text) const {
  std::vector<std::int32_t> tokens;
  tokens.reserve(text.size());
  for (const char32_t point : text) {
    const auto found = tokens_.find(point);
    if (found == tokens_.end()) {
      const bool few = size() <= 100;
      throw Error("\"" + to_utf8(point) + "\" is not one of the " + std::to_string(size()) +
                  " characters in the vocabulary of the model" + (few ? ": " + all_ : ""));
    }
    tokens.push_back(found->second);
  }
  return tokens;
}

std::string Characters::decode(std::span<const std::int32_t> tokens) const {
  std::string text;
  for (const std::int32_t token : tokens) text += (*this)[token];
  return text;
}

}  // namespace rapt::train
