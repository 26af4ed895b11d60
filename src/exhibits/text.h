// Text in a terminal: its width in columns, padding and line breaks. A CJK character takes two columns, a combining
// mark none.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace rapt::exhibits {

inline constexpr char32_t kReplacement = 0xFFFD;

// The code point at `at`, which is advanced. An invalid byte is read as U+FFFD.
char32_t next_code_point(std::string_view text, std::size_t& at);
std::string to_utf8(char32_t code_point);

int columns(char32_t code_point);
int columns(std::string_view text);

std::string pad_right(std::string_view text, int width);  // text, then spaces
std::string pad_left(std::string_view text, int width);   // spaces, then text
std::string clip(std::string_view text, int width);       // at most `width` columns, with "…" if something was cut

// Breaks at spaces, and between CJK characters, so that no line takes more than `width` columns if possible.
std::vector<std::string> wrap(std::string_view text, int width);

}  // namespace rapt::exhibits
