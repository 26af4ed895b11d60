// UTF-8, one code point at a time.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace rapt {

struct CodePoint {
  char32_t value = 0;
  std::size_t bytes = 0;  // of its UTF-8; 0: the text does not start with well-formed UTF-8
};

// The code point at the start of `text`, which is not empty. Overlong forms, surrogates and values above U+10FFFF are
// not well-formed.
inline CodePoint first_code_point(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char lead = byte(0);
  if (lead < 0x80) return {lead, 1};
  const std::size_t bytes = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
  if (lead < 0xC2 || lead > 0xF4 || text.size() < bytes) return {};
  char32_t value = lead & (0x7FU >> bytes);
  for (std::size_t i = 1; i < bytes; ++i) {
    if ((byte(i) & 0xC0U) != 0x80) return {};
    value = (value << 6) | (byte(i) & 0x3FU);
  }
  const bool overlong = (bytes == 3 && value < 0x800) || (bytes == 4 && value < 0x10000);
  if (overlong || value > 0x10FFFF || (value >= 0xD800 && value < 0xE000)) return {};
  return {value, bytes};
}

inline std::string to_utf8(char32_t code_point) {
  const auto byte = [](char32_t bits) { return static_cast<char>(static_cast<unsigned char>(bits)); };
  const auto tail = [&](int shift) { return byte(0x80U | ((code_point >> shift) & 0x3FU)); };
  if (code_point < 0x80) return {byte(code_point)};
  if (code_point < 0x800) return {byte(0xC0U | (code_point >> 6)), tail(0)};
  if (code_point < 0x10000) return {byte(0xE0U | (code_point >> 12)), tail(6), tail(0)};
  return {byte(0xF0U | (code_point >> 18)), tail(12), tail(6), tail(0)};
}

}  // namespace rapt
