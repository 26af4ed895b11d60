#include "exhibits/text.h"

#include <algorithm>
#include <array>
#include <cstdint>

#include "core/utf8.h"

namespace rapt::exhibits {
namespace {

struct Range {
  char32_t first;
  char32_t last;
};

constexpr std::array kWide = std::to_array<Range>({
    {0x1100, 0x115F},
    {0x2E80, 0x303E},
    {0x3041, 0xA4CF},
    {0xAC00, 0xD7A3},
    {0xF900, 0xFAFF},
    {0xFE30, 0xFE6F},
    {0xFF00, 0xFF60},
    {0xFFE0, 0xFFE6},
    {0x1F300, 0x1F64F},
    {0x1F680, 0x1F6FF},
    {0x1F900, 0x1F9FF},
    {0x20000, 0x3FFFD},
});

constexpr std::array kZero = std::to_array<Range>({
    {0x0300, 0x036F},
    {0x0483, 0x0489},
    {0x0591, 0x05BD},
    {0x064B, 0x065F},
    {0x0E31, 0x0E31},
    {0x0E34, 0x0E3A},
    {0x1AB0, 0x1AFF},
    {0x200B, 0x200F},
    {0x20D0, 0x20FF},
    {0xFE00, 0xFE0F},
    {0xFE20, 0xFE2F},
});

template <std::size_t kCount>
bool contains(const std::array<Range, kCount>& ranges, char32_t c) {
  return std::any_of(ranges.begin(), ranges.end(), [c](const Range& r) { return c >= r.first && c <= r.last; });
}

// Closing punctuation does not start a line.
bool clings(char32_t c) {
  static constexpr std::u32string_view kClosing = U"，。、；：？！）」』》”’…,.;:?!)";
  return kClosing.find(c) != std::u32string_view::npos;
}

// Opening punctuation does not end a line.
bool opens(char32_t c) {
  static constexpr std::u32string_view kOpening = U"（「『《“‘";
  return kOpening.find(c) != std::u32string_view::npos;
}

}  // namespace

char32_t next_code_point(std::string_view text, std::size_t& at) {
  const CodePoint next = first_code_point(text.substr(at));
  at += next.bytes == 0 ? 1 : next.bytes;
  return next.bytes == 0 ? kReplacement : next.value;
}

std::string to_utf8(char32_t code_point) { return rapt::to_utf8(code_point); }

int columns(char32_t c) {
  if (contains(kZero, c)) return 0;
  return contains(kWide, c) ? 2 : 1;
}

int columns(std::string_view text) {
  int width = 0;
  for (std::size_t at = 0; at < text.size();) width += columns(next_code_point(text, at));
  return width;
}

std::string pad_right(std::string_view text, int width) {
  const int missing = std::max(0, width - columns(text));
  return std::string(text) + std::string(static_cast<std::size_t>(missing), ' ');
}

std::string pad_left(std::string_view text, int width) {
  const int missing = std::max(0, width - columns(text));
  return std::string(static_cast<std::size_t>(missing), ' ') + std::string(text);
}

std::string clip(std::string_view text, int width) {
  if (columns(text) <= width) return std::string(text);
  std::string kept;
  int used = 1;  // the ellipsis
  for (std::size_t at = 0; at < text.size();) {
    const char32_t c = next_code_point(text, at);
    used += columns(c);
    if (used > width) break;
    kept += to_utf8(c);
  }
  return width < 1 ? "" : kept + "…";
}

std::vector<std::string> wrap(std::string_view text, int width) {
  // Unbreakable units: a word, or one CJK character with adjacent punctuation.
  struct Piece {
    std::string text;
    bool space_before = false;
  };
  std::vector<Piece> pieces;
  bool space = false;
  bool open = false;   // may the next character join the last piece?
  bool holds = false;  // must the next character join it?
  for (std::size_t at = 0; at < text.size();) {
    const char32_t c = next_code_point(text, at);
    if (c == ' ') {
      space = true, open = holds = false;
      continue;
    }
    const bool wide = columns(c) == 2;
    if (!pieces.empty() && !space && (holds || clings(c) || (open && !wide && !opens(c)))) {
      pieces.back().text += to_utf8(c);
    } else {
      pieces.push_back({to_utf8(c), space});
    }
    space = false;
    open = !wide;
    holds = opens(c);
  }

  std::vector<std::string> lines(1);
  for (const Piece& piece : pieces) {
    std::string& line = lines.back();
    const int needed = columns(piece.text) + (piece.space_before && !line.empty() ? 1 : 0);
    if (!line.empty() && columns(line) + needed > width) {
      lines.push_back(piece.text);
    } else {
      if (piece.space_before && !line.empty()) line += ' ';
      line += piece.text;
    }
  }
  return lines;
}

}  // namespace rapt::exhibits
