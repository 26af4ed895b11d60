#include "io/file_checks.h"

#include <algorithm>
#include <system_error>

#include "io/json.h"

namespace rapt::io {

std::string quoted(std::string_view name) {
  constexpr std::size_t kMost = 100;
  constexpr std::string_view kDigits = "0123456789abcdef";
  const bool utf8 = is_utf8(name);
  std::size_t shown = std::min(name.size(), kMost);
  while (shown < name.size() && utf8 && (static_cast<unsigned char>(name[shown]) & 0xc0U) == 0x80) --shown;
  std::string result = "\"";
  for (const char c : name.substr(0, shown)) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte == 0x7f || (byte >= 0x80 && !utf8)) {
      result += "\\x";
      result += kDigits[byte >> 4];
      result += kDigits[byte & 15];
    } else {
      result += c;
    }
  }
  if (name.size() > shown) result += "…";
  return result + "\"";
}

std::string list_of(const std::vector<std::string>& names) {
  constexpr std::size_t kMost = 8;
  if (names.empty()) return "none";
  std::string result;
  const std::size_t shown = std::min(names.size(), kMost);
  for (std::size_t i = 0; i < shown; ++i) result += text(i == 0 ? "" : ", ", quoted(names[i]));
  if (names.size() > shown) result += text(" and ", names.size() - shown, " more");
  return result;
}

FileChecks::FileChecks(std::string_view format, std::string_view file) {
  // A zero byte would truncate the message.
  start_ = file.find('\0') == std::string_view::npos ? text(format, ": ", file, ": ")
                                                     : text(format, ": ", quoted(file), ": ");
}

std::string FileChecks::system_words(int error) { return std::generic_category().message(error); }

}  // namespace rapt::io
