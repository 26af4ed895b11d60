#include "models/tokenizer/byte_level.h"

#include <algorithm>
#include <array>
#include <cstdint>

#include "core/utf8.h"
#include "models/tokenizer/unicode.h"

namespace rapt::models {
namespace {

// Bytes that are visible characters of Latin-1 stand for themselves; the others are U+0100, U+0101, … in their order.
bool stands_for_itself(unsigned byte) {
  return (byte >= '!' && byte <= '~') || (byte >= 0xA1 && byte <= 0xAC) || (byte >= 0xAE && byte <= 0xFF);
}

struct Alphabet {
  static constexpr std::size_t kCharacters = 0x144;  // the last is U+0143

  Alphabet() {
    bytes.fill(-1);
    char32_t next = 0x100;
    for (unsigned byte = 0; byte < 256; ++byte) {
      const char32_t character = stands_for_itself(byte) ? static_cast<char32_t>(byte) : next++;
      characters[byte] = character;
      bytes[character] = static_cast<std::int16_t>(byte);
    }
  }

  std::array<char32_t, 256> characters{};
  std::array<std::int16_t, kCharacters> bytes{};  // -1: not in the alphabet
};

const Alphabet& alphabet() {
  static const Alphabet kAlphabet;
  return kAlphabet;
}

// The number of bytes at the start of `text` that one U+FFFD stands for, where no character starts.
std::size_t broken_bytes(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned lead = byte(0);
  if (lead < 0xC2 || lead > 0xF4 || text.size() < 2) return 1;
  // The second byte has a range of its own after some first bytes: nothing overlong, no surrogates, nothing too large.
  const unsigned low = lead == 0xE0 ? 0xA0 : lead == 0xF0 ? 0x90 : 0x80;
  const unsigned high = lead == 0xED ? 0x9F : lead == 0xF4 ? 0x8F : 0xBF;
  if (lead < 0xE0 || byte(1) < low || byte(1) > high) return 1;
  if (lead < 0xF0 || text.size() < 3 || (byte(2) & 0xC0U) != 0x80) return 2;
  return 3;
}

// The end of the characters from `at` on that are (or are not) in the classes.
std::size_t run_end(std::string_view text, std::size_t at, unsigned classes, bool in) {
  while (at < text.size()) {
    const CodePoint next = first_code_point(text.substr(at));
    if (is_any(next.value, classes) != in) break;
    at += next.bytes;
  }
  return at;
}

std::size_t contraction_bytes(std::string_view text) {
  for (const std::string_view ending : {"'s", "'t", "'re", "'ve", "'m", "'ll", "'d"}) {
    if (text.substr(0, ending.size()) == ending) return ending.size();
  }
  return 0;
}

}  // namespace

char32_t byte_level_character(unsigned char byte) { return alphabet().characters[byte]; }

std::string bytes_of_token(std::string_view token) {
  std::string bytes;
  for (std::string_view rest = token; !rest.empty();) {
    const char32_t character = take_code_point(rest);
    const int byte = character < Alphabet::kCharacters ? alphabet().bytes[character] : -1;
    if (byte < 0) return std::string(token);
    bytes += static_cast<char>(static_cast<unsigned char>(byte));
  }
  return bytes;
}

std::string valid_utf8(std::string_view bytes) {
  std::string text;
  while (!bytes.empty()) {
    const std::size_t good = first_code_point(bytes).bytes;
    if (good > 0) {
      text.append(bytes, 0, good);
      bytes.remove_prefix(good);
    } else {
      text += "\uFFFD";
      bytes.remove_prefix(broken_bytes(bytes));
    }
  }
  return text;
}

std::size_t gpt2_part_end(std::string_view text, std::size_t begin) {
  if (const std::size_t bytes = contraction_bytes(text.substr(begin)); bytes > 0) return begin + bytes;
  // A space belongs to the letters, the digits or the other characters after it.
  const std::size_t start = text[begin] == ' ' && begin + 1 < text.size() ? begin + 1 : begin;
  const char32_t first = first_code_point(text.substr(start)).value;
  if (is_any(first, kLetter)) return run_end(text, start, kLetter, true);
  if (is_any(first, kNumber)) return run_end(text, start, kNumber, true);
  if (!is_any(first, kSpace)) return run_end(text, start, kLetter | kNumber | kSpace, false);
  // The last white space before a character is left to the next part.
  const std::size_t end = run_end(text, begin, kSpace, true);
  if (end == text.size()) return end;
  std::string_view spaces = text.substr(begin, end - begin);
  (void)take_last_code_point(spaces);
  return spaces.empty() ? end : begin + spaces.size();
}

}  // namespace rapt::models
