// A strict reader of JSON (RFC 8259) that reads one value after another and stores none.
//
//   JsonReader json(text, checks, start);
//   json.object([&](std::string key) {
//     if (key == "shape") json.array([&] { shape.push_back(json.whole_number()); });
//     else json.skip();
//   });
//   json.end();
//
// Every byte is checked: UTF-8, escapes, numbers, commas, depth, and that no key of an object appears twice. Errors are
// thrown as rapt::Error with the byte offset in the file; the text starts at byte `start` of it.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "io/file_checks.h"

namespace rapt::io {

// Whether bytes are well-formed UTF-8: no overlong forms, no surrogates, nothing past U+10FFFF.
bool is_utf8(std::string_view text);

// The text as a JSON string, with its quotes. `text` must be UTF-8.
std::string json_string(std::string_view text);

class JsonReader {
 public:
  static constexpr int kMaxDepth = 32;

  JsonReader(std::string_view text, const FileChecks& checks, std::size_t start = 0)
      : text_(text), checks_(checks), start_(start) {}

  // Each reads one value of that kind. `member` and `element` must read exactly one value.
  void object(const std::function<void(const std::string& key)>& member);
  void array(const std::function<void()>& element);
  std::string string();
  std::int64_t whole_number();  // 0 or more, without fraction or exponent
  void skip();                  // any value, still checked

  // Throws unless only white space is left.
  void end();

 private:
  template <class... Pieces>
  [[noreturn]] void fail(const Pieces&... pieces) const {
    checks_.fail("byte ", start_ + offset_, ", in the header: ", pieces...);
  }
  [[noreturn]] void expected(const char* what) const;
  char peek();  // the next byte that is not white space; 0 at the end
  void take(char c, const char* what);
  void enter();
  char32_t escaped_unit();
  void escape(std::string& to);
  void literal(std::string_view word);
  void number();

  std::string_view text_;
  const FileChecks& checks_;
  std::size_t start_;
  std::size_t offset_ = 0;
  int depth_ = 0;
};

}  // namespace rapt::io
