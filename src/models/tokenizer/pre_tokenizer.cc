#include "models/tokenizer/pre_tokenizer.h"

#include <string_view>

#include "core/utf8.h"
#include "models/tokenizer/byte_level.h"
#include "models/tokenizer/unicode.h"

namespace rapt::models {
namespace {

struct Range {
  std::size_t begin = 0, end = 0;
};

// Characters of one kind stay together; those of kind 0 are left out, and each of kind kAlone is a word.
constexpr int kAlone = -1;

int kind_of(SplitStep step, char32_t point) {
  const unsigned classes = classes_of(point);
  if ((classes & kSpace) != 0) return 0;
  switch (step) {
    case SplitStep::bert: return (classes & kPunctuation) != 0 ? kAlone : 1;
    case SplitStep::words: return (classes & kWordCharacter) != 0 ? 1 : 2;
    case SplitStep::white_space: return 1;
  }
  return 1;
}

void split_range(SplitStep step, std::string_view text, Range range, std::vector<Range>& to) {
  int last = 0;  // the kind of the character before
  for (std::size_t at = range.begin; at < range.end;) {
    const CodePoint next = first_code_point(text.substr(at));
    const int kind = kind_of(step, next.value);
    if (kind != 0 && (kind != last || kind == kAlone)) to.push_back({at, at});
    at += next.bytes;
    if (kind != 0) to.back().end = at;
    last = kind;
  }
}

// Writes the bytes [begin, end) of a text in the byte-level alphabet.
void write_byte_level(const AlignedText& text, std::size_t begin, std::size_t end, AlignedText& to) {
  to.clear();
  for (std::size_t at = begin; at < end; ++at) {
    to.append(byte_level_character(static_cast<unsigned char>(text.text()[at])), text.origin_at(at));
  }
}

}  // namespace

void PreTokenizer::split(const AlignedText& text, std::size_t begin, std::size_t end, const Each& each) const {
  std::vector<Range> ranges;
  if (begin < end) ranges.push_back({begin, end});
  for (const SplitStep step : steps) {
    std::vector<Range> smaller;
    for (const Range range : ranges) split_range(step, text.text(), range, smaller);
    ranges = std::move(smaller);
  }
  if (!byte_level) {
    for (const Range range : ranges) each(text, range.begin, range.end);
    return;
  }
  AlignedText word;
  const auto write_words = [&](const AlignedText& from, Range range) {
    const auto write_word = [&](std::size_t first, std::size_t last) {
      write_byte_level(from, first, last, word);
      each(word, 0, word.text().size());
    };
    if (!splits_as_gpt2) return write_word(range.begin, range.end);
    split_as_gpt2(from.part(range.begin, range.end),
                  [&](std::size_t first, std::size_t last) { write_word(range.begin + first, range.begin + last); });
  };
  for (const Range range : ranges) {
    if (adds_space && text.text()[range.begin] != ' ') {
      AlignedText with_space = text.slice(range.begin, range.end);
      with_space.prepend(' ');
      write_words(with_space, {0, with_space.text().size()});
    } else {
      write_words(text, range);
    }
  }
}

}  // namespace rapt::models
