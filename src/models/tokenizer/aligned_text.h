// A text that is changed step by step, where each byte knows which bytes of the input it came from.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace rapt::models {

// Bytes [begin, end) of the input. 32 bits, because there is one for each byte of a text.
struct Origin {
  std::uint32_t begin = 0, end = 0;
};

class AlignedText {
 public:
  static constexpr std::size_t kMostBytes = 0xFFFFFFFF;  // of the input

  AlignedText() = default;
  // The bytes [begin, end) of an input, unchanged; each byte comes from its whole character.
  AlignedText(std::string_view input, std::size_t begin, std::size_t end);

  const std::string& text() const { return text_; }
  std::string_view part(std::size_t begin, std::size_t end) const {
    return std::string_view(text_).substr(begin, end - begin);
  }
  AlignedText slice(std::size_t begin, std::size_t end) const;

  // The bytes of the input that the bytes [begin, end) of the text came from. Origins never go backwards, because a
  // Rewriter reads the old text in its order.
  Origin origin_of(std::size_t begin, std::size_t end) const;

  void clear();
  // Appends a character with this origin.
  void append(char32_t point, Origin origin);
  Origin origin_at(std::size_t byte) const { return origins_[byte]; }

  // Adds a character in front, which comes from the same place as the first one. The text is not empty.
  void prepend(char c);

 private:
  friend class Rewriter;

  std::string text_;
  std::vector<Origin> origins_;  // of each byte of the text
};

// Writes a new text for an AlignedText while it reads the old one, character by character. A step of a normalizer:
//
//   Rewriter rewriter(text);
//   for (std::string_view rest = text.text(); !rest.empty();) {
//     const char32_t point = take_code_point(rest);
//     if (is_any(point, kOther)) rewriter.skip();
//     else rewriter.replace(point);
//   }
//   rewriter.finish();
class Rewriter {
 public:
  explicit Rewriter(AlignedText& text) : old_(text) {}

  // Writes a character in place of the next one that is read.
  void replace(char32_t point);
  // Writes a character that comes from the same place as the last one that was read.
  void add(char32_t point);
  // Reads this many characters without writing one.
  void skip(std::size_t characters = 1);
  // Stores the new text. Everything must have been read.
  void finish();

 private:
  AlignedText& old_;
  AlignedText new_;
  std::size_t at_ = 0;  // the next byte to be read
};

}  // namespace rapt::models
