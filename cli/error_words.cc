#include "error_words.h"

#include <array>
#include <string_view>
#include <utility>

#include <fmt/format.h>

namespace rapt::cli {
namespace {

using Flag = std::pair<std::string_view, std::string_view>;
constexpr std::array<Flag, 4> kFirstWords{
    {{"key_lengths", "--key-lengths"}, {"softcap", "--softcap"}, {"heads", "--heads"}, {"kv_heads", "--kv-heads"}}};
constexpr std::array<Flag, 4> kWords{{{"Alignment::top_left()", "--align top-left"},
                                      {"Alignment::bottom_right()", "--align bottom-right"},
                                      {"give heads.", "give --heads."},
                                      {"choose one with prefix:", "choose one with --prefix:"}}};

void replace(std::string& text, std::string_view what, std::string_view by) {
  const std::size_t at = text.find(what);
  if (at != std::string::npos) text.replace(at, what.size(), by);
}

}  // namespace

std::string without_function(const Error& error) {
  const std::string what = error.what();
  const bool names_one = what.starts_with("attention: ") || what.starts_with("MultiHeadAttention");
  return names_one ? what.substr(what.find(": ") + 2) : what;
}

std::string with_flags(const Error& error, const std::string& mask) {
  std::string words = without_function(error);
  if (words == error.what()) return words;  // of a file, whose name may hold anything
  for (const auto& [option, flag] : kWords) replace(words, option, flag);
  for (const auto& [option, flag] : kFirstWords) {
    if (!words.starts_with(option)) continue;
    words.replace(0, option.size(), flag);
    break;
  }
  if (words.starts_with("masks[0]")) {
    replace(words, "masks[0]", fmt::format("--mask: {}", mask));
    if (words.find("does not broadcast") != std::string::npos) {
      words += "; a matrix is (Lq, Lk), or with --mask-of keys (B, Lk)";
    }
  }
  return words;
}

}  // namespace rapt::cli
