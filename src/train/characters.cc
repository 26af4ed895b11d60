#include "train/characters.h"

#include <cstddef>
#include <set>

#include "rapt/error.h"

namespace rapt::train {

namespace {

// How many bytes a character has that begins with `lead`; 0: none begins so.
std::size_t length_of(unsigned char lead) {
  if (lead < 0x80) return 1;
  if (lead >= 0xC2 && lead < 0xE0) return 2;
  if (lead >= 0xE0 && lead < 0xF0) return 3;
  return lead >= 0xF0 && lead < 0xF5 ? 4 : 0;
}

// The character at the start of `text` and its bytes; 0 bytes where there is none.
std::pair<char32_t, std::size_t> first_of(std::string_view text) {
  const auto lead = static_cast<unsigned char>(text[0]);
  const std::size_t length = length_of(lead);
  if (length < 2) return {lead, length};
  if (text.size() < length) return {0, 0};
  char32_t point = lead & (0x7FU >> length);
  for (std::size_t n = 1; n < length; ++n) {
    const auto byte = static_cast<unsigned char>(text[n]);
    if ((byte & 0xC0U) != 0x80) return {0, 0};
    point = (point << 6) | (byte & 0x3FU);
  }
  const bool shorter_exists = (length == 3 && point < 0x800) || (length == 4 && point < 0x10000);
  const bool surrogate = point >= 0xD800 && point < 0xE000;
  if (shorter_exists || surrogate || point > 0x10FFFF) return {0, 0};
  return {point, length};
}

}  // namespace

std::u32string code_points(std::string_view text, const std::string& name) {
  std::u32string points;
  points.reserve(text.size());
  for (std::size_t at = 0; at < text.size();) {
    const auto [point, length] = first_of(text.substr(at));
    if (length == 0 || point == 0) {
      throw Error(name + " is not a text file: byte " + std::to_string(at) +
                  (length == 0 ? " is not UTF-8" : " is 0, as in a binary file") + "; give a file of UTF-8 text");
    }
    points.push_back(point);
    at += length;
  }
  return points;
}

std::string to_utf8(char32_t point) {
  const auto byte = [](char32_t bits) { return static_cast<char>(static_cast<unsigned char>(bits)); };
  const auto tail = [&](int shift) { return byte(0x80U | ((point >> shift) & 0x3FU)); };
  if (point < 0x80) return {byte(point)};
  if (point < 0x800) return {byte(0xC0U | (point >> 6)), tail(0)};
  if (point < 0x10000) return {byte(0xE0U | (point >> 12)), tail(6), tail(0)};
  return {byte(0xF0U | (point >> 18)), tail(12), tail(6), tail(0)};
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
