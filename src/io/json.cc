#include "io/json.h"

#include <algorithm>
#include <limits>
#include <unordered_set>

#include "core/utf8.h"

namespace rapt::io {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }

}  // namespace

bool is_utf8(std::string_view text) {
  while (!text.empty()) {
    const std::size_t bytes = first_code_point(text).bytes;
    if (bytes == 0) return false;
    text.remove_prefix(bytes);
  }
  return true;
}

std::string json_string(std::string_view text) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string result = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      result += '\\';
      result += c;
    } else if (byte < 0x20) {
      result += "\\u00";
      result += kDigits[byte >> 4];
      result += kDigits[byte & 15];
    } else {
      result += c;
    }
  }
  return result + '"';
}

void JsonReader::expected(const char* what) const {
  if (offset_ >= text_.size()) fail("it ends where ", what, " should be");
  fail("expected ", what, ", found ", quoted(text_.substr(offset_, 1)));
}

char JsonReader::peek() {
  while (offset_ < text_.size()) {
    const char c = text_[offset_];
    if (c != ' ' && c != '\t' && c != '\n' && c != '\r') return c;
    ++offset_;
  }
  return 0;
}

void JsonReader::take(char c, const char* what) {
  if (peek() != c || offset_ >= text_.size()) expected(what);
  ++offset_;
}

void JsonReader::enter() {
  if (++depth_ > kMaxDepth) fail("values are nested more than ", int{kMaxDepth}, " levels deep");
}

void JsonReader::object(const std::function<void(const std::string& key)>& member) {
  take('{', "an object");
  enter();
  std::unordered_set<std::string> seen;
  for (bool first = true; peek() != '}'; first = false) {
    if (!first) take(',', "',' or '}'");
    (void)peek();
    const std::size_t start = offset_;
    const std::string key = string();
    if (!seen.insert(key).second) {
      offset_ = start;
      fail("the key ", quoted(key), " appears twice");
    }
    take(':', "':'");
    member(key);
  }
  ++offset_;
  --depth_;
}

void JsonReader::array(const std::function<void()>& element) {
  take('[', "an array");
  enter();
  for (bool first = true; peek() != ']'; first = false) {
    if (!first) take(',', "',' or ']'");
    element();
  }
  ++offset_;
  --depth_;
}

char32_t JsonReader::escaped_unit() {
  char32_t unit = 0;
  for (int i = 0; i < 4; ++i) {
    if (offset_ >= text_.size()) expected("a digit of \\u");
    const char c = text_[offset_];
    const bool lower = c >= 'a' && c <= 'f';
    const bool upper = c >= 'A' && c <= 'F';
    if (!is_digit(c) && !lower && !upper) expected("a hexadecimal digit of \\u");
    unit = unit * 16 + static_cast<char32_t>(is_digit(c) ? c - '0' : lower ? c - 'a' + 10 : c - 'A' + 10);
    ++offset_;
  }
  return unit;
}

// Reads what follows a backslash.
void JsonReader::escape(std::string& to) {
  constexpr std::string_view kLetters = "\"\\/bfnrt";
  constexpr std::string_view kMeanings = "\"\\/\b\f\n\r\t";
  if (offset_ >= text_.size()) expected("an escape");
  const char c = text_[offset_];
  if (const std::size_t known = kLetters.find(c); known != std::string_view::npos) {
    to += kMeanings[known];
    ++offset_;
    return;
  }
  if (c != 'u') expected("an escape");
  ++offset_;
  char32_t code = escaped_unit();
  if (code >= 0xdc00 && code <= 0xdfff) fail("unpaired surrogate");
  if (code >= 0xd800 && code <= 0xdbff) {
    if (text_.substr(offset_, 2) != "\\u") fail("unpaired surrogate");
    offset_ += 2;
    const char32_t low = escaped_unit();
    if (low < 0xdc00 || low > 0xdfff) fail("unpaired surrogate");
    code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
  }
  to += to_utf8(code);
}

std::string JsonReader::string() {
  take('"', "a string");
  std::string result;
  while (true) {
    if (offset_ >= text_.size()) expected("the end of a string");
    const char c = text_[offset_];
    if (c == '"') break;
    if (c == '\\') {
      ++offset_;
      escape(result);
      continue;
    }
    if (static_cast<unsigned char>(c) < 0x20) fail("a string contains the control character ", quoted({&c, 1}));
    const std::size_t length = first_code_point(text_.substr(offset_)).bytes;
    if (length == 0) fail("a string is not UTF-8");
    result.append(text_, offset_, length);
    offset_ += length;
  }
  ++offset_;
  return result;
}

std::int64_t JsonReader::whole_number() {
  const char first = peek();
  if (!is_digit(first)) expected("a non-negative integer");
  const std::size_t start = offset_;
  number();
  std::int64_t value = 0;
  for (const char c : text_.substr(start, offset_ - start)) {
    const bool fits =
        is_digit(c) && !__builtin_mul_overflow(value, 10, &value) && !__builtin_add_overflow(value, c - '0', &value);
    if (!fits) {
      const std::string_view found = text_.substr(start, std::min<std::size_t>(offset_ - start, 40));
      offset_ = start;
      fail(found, is_digit(c) ? " overflows" : " is not an integer");
    }
  }
  return value;
}

// A number of any kind. Its syntax is checked; its value is ignored.
void JsonReader::number() {
  const auto at = [&] { return offset_ < text_.size() ? text_[offset_] : '\0'; };
  const auto digits = [&] {
    if (!is_digit(at())) expected("a digit");
    while (is_digit(at())) ++offset_;
  };
  if (at() == '-') ++offset_;
  if (at() == '0') {
    ++offset_;
    if (is_digit(at())) fail("a number starts with 0");
  } else {
    digits();
  }
  if (at() == '.') {
    ++offset_;
    digits();
  }
  if (at() == 'e' || at() == 'E') {
    ++offset_;
    if (at() == '+' || at() == '-') ++offset_;
    digits();
  }
}

void JsonReader::literal(std::string_view word) {
  if (text_.substr(offset_, word.size()) != word) expected("a value");
  offset_ += word.size();
}

void JsonReader::skip() {
  switch (peek()) {
    case '{': return object([this](const std::string&) { skip(); });
    case '[': return array([this] { skip(); });
    case '"': return static_cast<void>(string());
    case 't': return literal("true");
    case 'f': return literal("false");
    case 'n': return literal("null");
    case '-': return number();
    default: break;
  }
  if (!is_digit(peek())) expected("a value");
  number();
}

void JsonReader::end() {
  (void)peek();
  if (offset_ < text_.size()) expected("the end");
}

}  // namespace rapt::io
