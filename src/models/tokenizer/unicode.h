// What tokenizers need to know about characters. Hugging Face's tokenizers have the tables of several versions of
// Unicode; these are the same (scripts/unicode_tables.py).
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace rapt::models {

// The classes of a code point, as bits.
enum CharacterClass : std::uint8_t {
  kLetter = 1,           // \p{L} in the expression of GPT-2
  kNumber = 2,           // \p{N} there
  kSpace = 4,            // white space, everywhere
  kPunctuation = 8,      // BERT isolates it; all of ASCII that is neither a letter, a digit nor a space
  kNonspacing = 16,      // the marks that BERT's strip_accents removes
  kOther = 32,           // what BERT's clean_text removes: control, format and private use
  kMark = 64,            // what the normalizer StripAccents removes
  kWordCharacter = 128,  // \w
};

std::uint8_t classes_of(char32_t point);
inline bool is_any(char32_t point, unsigned classes) { return (classes_of(point) & classes) != 0; }

std::uint8_t combining_class(char32_t point);

// The lower case of a code point, itself if it has none. The lower case of U+0130 has two code points, of which this is
// the first; the second is U+0307.
char32_t lower_of(char32_t point);

// Appends the full canonical or compatibility decomposition, which is the code point itself if it has none.
void decompose(char32_t point, bool compatible, std::u32string& to);
// The code point that two compose into; 0 if they do not.
char32_t compose(char32_t first, char32_t second);

// The first code point of a text that is well-formed and not empty, which is removed from the text.
char32_t take_code_point(std::string_view& text);
// The last one.
char32_t take_last_code_point(std::string_view& text);
// The byte at which a text stops being well-formed UTF-8; npos if it is well-formed.
std::size_t not_utf8_at(std::string_view text);

}  // namespace rapt::models
