// Names from a file, in a message.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "core/utf8.h"

namespace rapt::models {

// In quotes, shortened, and with escapes for control characters and for bytes that are not UTF-8.
inline std::string quoted(std::string_view name) {
  constexpr std::size_t kMost = 60;
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string result = "\"";
  std::size_t at = 0;
  while (at < name.size() && at < kMost) {
    const CodePoint found = first_code_point(name.substr(at));
    if (found.bytes == 0 || found.value < 0x20 || (found.value >= 0x7F && found.value < 0xA0)) {
      const auto byte = static_cast<unsigned char>(name[at++]);
      result += "\\x";
      result += kDigits[byte >> 4U];
      result += kDigits[byte & 15U];
    } else {
      result.append(name, at, found.bytes);
      at += found.bytes;
    }
  }
  return result + (at < name.size() ? "…\"" : "\"");
}

}  // namespace rapt::models
