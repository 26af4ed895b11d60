#include "cli/error_words.h"

#include <array>
#include <string_view>
#include <utility>

#include <fmt/format.h>

namespace rapt::cli {
namespace {

using Flag = std::pair<std::string_view, std::string_view>;
constexpr std::array<Flag, 15> kFirstWords{{{"key_lengths", "--key-lengths"},
                                            {"softcap", "--softcap"},
                                            {"alibi_slopes", "--alibi-slopes"},
                                            {"sinks", "--sinks"},
                                            {"alignment has", "--offset has"},
                                            {"packed sequences", "--query-starts: sequences"},
                                            {"packed.query_starts", "--query-starts"},
                                            {"packed.key_starts", "--key-starts"},
                                            {"packed cannot", "--query-starts cannot"},
                                            {"heads", "--heads"},
                                            {"kv_heads", "--kv-heads"},
                                            {"key ", "--key "},
                                            {"key,", "--key,"},
                                            {"value ", "--value "},
                                            {"the list has ", "the file has "}}};
constexpr std::array<Flag, 8> kWords{{{"Alignment::top_left()", "--align top-left"},
                                      {"Alignment::bottom_right()", "--align bottom-right"},
                                      {"causal, window or ALiBi with ", "--causal, --window or --alibi-slopes with "},
                                      {", query has ", ", the queries have "},
                                      {", key has ", ", the keys have "},
                                      {", packed.key_starts ", ", --key-starts "},
                                      {"give heads.", "give --heads."},
                                      {"choose one with prefix:", "choose one with --prefix:"}}};

void replace(std::string& text, std::string_view what, std::string_view by) {
  const std::size_t at = text.find(what);
  if (at != std::string::npos) text.replace(at, what.size(), by);
}

std::string rotary_words(const std::string& words) {
  for (const std::string_view option : {"base ", "size ", "scaling"}) {
    if (words.starts_with(option)) return fmt::format("--rotary-{}", words);
  }
  const std::size_t advice = words.find("; give an even head size");
  if (advice == std::string::npos) return fmt::format("--rotary: {}", words);
  return fmt::format("--rotary: {}; another number of --heads gives another head size", words.substr(0, advice));
}

}  // namespace

std::string without_function(const Error& error) {
  const std::string what = error.what();
  const bool names_one =
      what.starts_with("attention: ") || what.starts_with("MultiHeadAttention") || what.starts_with("rotary: ");
  return names_one ? what.substr(what.find(": ") + 2) : what;
}

std::string with_flags(const Error& error, const std::string& mask) {
  std::string words = without_function(error);
  if (words == error.what()) return words;  // the message is about a file, whose name may contain anything
  if (std::string_view(error.what()).starts_with("rotary: ")) return rotary_words(words);
  constexpr std::string_view kOfLayer = "attention.";  // the prefix of a layer's options
  if (words.starts_with(kOfLayer)) words = words.substr(kOfLayer.size());
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
