// Lossless conversion of numbers to text and back, independent of the locale. Header-only, so that code that links only
// with the public library can use it.
#pragma once

#include <array>
#include <charconv>
#include <cstdint>
#include <limits>
#include <locale>
#include <sstream>
#include <string>
#include <string_view>
#include <system_error>

#include "core/text.h"

namespace rapt {

namespace number_words {

template <class Number>
bool reads_whole(std::string_view words, Number& number) {
  const char* first = words.data();
  const char* last = first + words.size();
  const auto [end, error] = std::from_chars(first, last, number);
  return error == std::errc() && end == last;
}

}  // namespace number_words

// Whether the whole text is a number; if so, stores it in `number`.
inline bool reads(std::string_view words, std::int64_t& number) { return number_words::reads_whole(words, number); }

#if defined(__cpp_lib_to_chars)

inline std::string words_of(double number) {
  std::array<char, 32> words{};
  return {words.data(), std::to_chars(words.data(), words.data() + words.size(), number).ptr};
}

inline bool reads(std::string_view words, double& number) { return number_words::reads_whole(words, number); }

#else  // standard libraries that support only integers

inline std::string words_of(double number) {
  std::ostringstream stream = plain_stream();
  stream.precision(std::numeric_limits<double>::max_digits10);
  stream << number;
  return stream.str();
}

inline bool reads(std::string_view words, double& number) {
  if (words.empty() || words.front() == '+' || words.front() == ' ') return false;
  std::istringstream stream{std::string(words)};
  stream.imbue(std::locale::classic());
  return static_cast<bool>(stream >> std::noskipws >> number) &&
         stream.peek() == std::istringstream::traits_type::eof();
}

#endif

}  // namespace rapt
