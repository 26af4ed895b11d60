#include "models/tokenizer/unicode.h"

#include <algorithm>
#include <cstddef>
#include <vector>

#include "core/utf8.h"
#include "models/tokenizer/unicode_tables.h"

namespace rapt::models {
namespace {

// Reads the numbers of scripts/unicode_tables.py.
class Numbers {
 public:
  explicit Numbers(const char* text) : at_(text) {}

  bool more() const { return *at_ != '\0'; }
  std::uint32_t next() {
    std::uint32_t leading = 0;
    for (std::uint32_t digit = next_digit();; digit = next_digit()) {
      if (digit < kHalf) return leading * kHalf + digit;
      leading = leading * (kHalf + 1) + (digit - kHalf);
    }
  }
  std::int32_t next_signed() {
    const std::uint32_t value = next();
    const auto half = static_cast<std::int32_t>(value / 2);
    return value % 2 == 0 ? half : -half - 1;
  }

 private:
  static constexpr std::uint32_t kHalf = 45;

  // Digits are printable ASCII from '#' on, without the backslash.
  std::uint32_t next_digit() {
    const std::uint32_t code = static_cast<unsigned char>(*at_++);
    return code - '#' - (code > '\\' ? 1 : 0);
  }

  const char* at_;
};

char32_t plus(char32_t point, std::int32_t distance) {
  return static_cast<char32_t>(static_cast<std::int32_t>(point) + distance);
}

// A value for each code point, as runs: each entry is the first code point of a run, and the value in the low 8 bits.
class Runs {
 public:
  explicit Runs(Numbers numbers) {
    std::uint32_t start = 0;
    while (numbers.more()) {
      const std::uint32_t length = numbers.next();
      starts_.push_back(start << 8U | numbers.next());
      start += length;
    }
  }
  std::uint8_t operator()(char32_t point) const {
    const auto after =
        std::upper_bound(starts_.begin(), starts_.end(), static_cast<std::uint32_t>(point) << 8U | 0xFFU);
    return static_cast<std::uint8_t>(*(after - 1));
  }

 private:
  std::vector<std::uint32_t> starts_;
};

struct LowerRun {
  char32_t first = 0, last = 0;
  std::uint32_t step = 1;
  std::int32_t distance = 0;
};

struct Decomposition {
  char32_t point = 0;
  std::uint32_t start = 0, count = 0;  // of its parts
};

class Decompositions {
 public:
  struct Pair {
    char32_t first, second, composed;
  };

  // Pairs that compose again are added to `pairs`.
  Decompositions(Numbers numbers, std::vector<Pair>& pairs) {
    std::u32string before(32, U'\0');
    char32_t point = 0;
    while (numbers.more()) {
      point += numbers.next();
      const std::uint32_t header = numbers.next();
      entries_.push_back({point, static_cast<std::uint32_t>(parts_.size()), header / 2});
      for (std::uint32_t i = 0; i < header / 2; ++i) {
        before[i] = plus(before[i], numbers.next_signed());
        parts_.push_back(before[i]);
      }
      if (header % 2 == 1) pairs.push_back({before[0], before[1], point});
    }
  }

  // The parts of a code point; none if it has no decomposition of this kind.
  std::u32string_view find(char32_t point) const {
    const auto found = std::lower_bound(entries_.begin(), entries_.end(), point,
                                        [](const Decomposition& entry, char32_t value) { return entry.point < value; });
    if (found == entries_.end() || found->point != point) return {};
    return std::u32string_view(parts_).substr(found->start, found->count);
  }

 private:
  std::vector<Decomposition> entries_;  // in the order of their code points
  std::u32string parts_;
};

std::vector<LowerRun> lower_runs() {
  std::vector<LowerRun> runs;
  char32_t first = 0;
  for (Numbers numbers(kLowerRuns); numbers.more();) {
    first += numbers.next();
    const std::uint32_t count = numbers.next(), step = numbers.next();
    runs.push_back({first, first + (count - 1) * step, step, numbers.next_signed()});
  }
  return runs;
}

struct Tables {
  static constexpr std::size_t kDirect = 0x3400;  // the scripts of most texts, up to the ideographs

  Tables() {
    for (std::size_t point = 0; point < kDirect; ++point) direct[point] = classes(static_cast<char32_t>(point));
    std::sort(pairs.begin(), pairs.end(), [](const auto& a, const auto& b) {
      return a.first != b.first ? a.first < b.first : a.second < b.second;
    });
  }

  Runs classes{Numbers(kClassRuns)};
  Runs combining{Numbers(kCombiningRuns)};
  std::vector<LowerRun> lower = lower_runs();
  std::vector<Decompositions::Pair> pairs;  // in the order of first and second
  Decompositions canonical{Numbers(kCanonicalDecompositions), pairs};
  Decompositions compatible{Numbers(kCompatibleDecompositions), pairs};
  std::vector<std::uint8_t> direct = std::vector<std::uint8_t>(kDirect);
};

const Tables& tables() {
  static const Tables kTables;
  return kTables;
}

// Hangul is composed by arithmetic (the Unicode standard, section 3.12).
constexpr char32_t kFirstSyllable = 0xAC00, kFirstLead = 0x1100, kFirstVowel = 0x1161, kFirstTail = 0x11A7;
constexpr char32_t kLeads = 19, kVowels = 21, kTails = 28;
constexpr char32_t kSyllables = kLeads * kVowels * kTails;

char32_t compose_hangul(char32_t first, char32_t second) {
  // A value below the first one wraps to a large one.
  if (first - kFirstLead < kLeads && second - kFirstVowel < kVowels) {
    return kFirstSyllable + ((first - kFirstLead) * kVowels + (second - kFirstVowel)) * kTails;
  }
  const char32_t syllable = first - kFirstSyllable, tail = second - kFirstTail;
  if (syllable < kSyllables && syllable % kTails == 0 && tail > 0 && tail < kTails) return first + tail;
  return 0;
}

}  // namespace

std::uint8_t classes_of(char32_t point) {
  const Tables& all = tables();
  return point < Tables::kDirect ? all.direct[point] : all.classes(point);
}

std::uint8_t combining_class(char32_t point) { return point < 0x300 ? std::uint8_t{0} : tables().combining(point); }

char32_t lower_of(char32_t point) {
  if (point < 0x80) return point >= 'A' && point <= 'Z' ? point + ('a' - 'A') : point;
  if (point == 0x130) return 'i';
  const std::vector<LowerRun>& runs = tables().lower;
  const auto run = std::lower_bound(runs.begin(), runs.end(), point,
                                    [](const LowerRun& each, char32_t value) { return each.last < value; });
  if (run == runs.end() || point < run->first || (point - run->first) % run->step != 0) return point;
  return plus(point, run->distance);
}

void decompose(char32_t point, bool compatible, std::u32string& to) {
  if (point < 0xA0) {
    to += point;
    return;
  }
  if (const char32_t syllable = point - kFirstSyllable; syllable < kSyllables) {
    to.push_back(kFirstLead + syllable / (kVowels * kTails));
    to.push_back(kFirstVowel + syllable % (kVowels * kTails) / kTails);
    if (syllable % kTails != 0) to.push_back(kFirstTail + syllable % kTails);
    return;
  }
  std::u32string_view parts = tables().canonical.find(point);
  if (parts.empty() && compatible) parts = tables().compatible.find(point);
  if (parts.empty()) to += point;
  for (const char32_t part : parts) decompose(part, compatible, to);
}

char32_t compose(char32_t first, char32_t second) {
  if (second < 0x300) return 0;
  if (const char32_t syllable = compose_hangul(first, second); syllable != 0) return syllable;
  const std::vector<Decompositions::Pair>& pairs = tables().pairs;
  const auto found = std::lower_bound(pairs.begin(), pairs.end(), first, [&](const auto& pair, char32_t value) {
    return pair.first != value ? pair.first < value : pair.second < second;
  });
  return found != pairs.end() && found->first == first && found->second == second ? found->composed : U'\0';
}

char32_t take_code_point(std::string_view& text) {
  const CodePoint found = first_code_point(text);
  text.remove_prefix(found.bytes);
  return found.value;
}

char32_t take_last_code_point(std::string_view& text) {
  std::size_t start = text.size() - 1;
  while (start > 0 && (static_cast<unsigned char>(text[start]) & 0xC0U) == 0x80) --start;
  const char32_t value = first_code_point(text.substr(start)).value;
  text.remove_suffix(text.size() - start);
  return value;
}

std::size_t not_utf8_at(std::string_view text) {
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t bytes = first_code_point(text.substr(at)).bytes;
    if (bytes == 0) return at;
    at += bytes;
  }
  return std::string_view::npos;
}

}  // namespace rapt::models
