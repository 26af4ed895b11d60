// The flags of `rapt run` for rotary embedding; rapt/rotary.h documents them.
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "cli/command.h"
#include "cli/run/options.h"

namespace rapt::cli {
namespace {

constexpr std::array<std::pair<std::string_view, RotaryPairs>, 2> kPairs{
    {{"half", RotaryPairs::half_split}, {"interleaved", RotaryPairs::interleaved}}};

// A kind of scaling, and the numbers after its colon, of which the first `least` are required.
struct ScalingWords {
  RotaryScaling::Kind kind;
  std::size_t least;
  std::string_view numbers;
};
using Kind = RotaryScaling::Kind;
constexpr std::array<std::pair<std::string_view, ScalingWords>, 5> kScalings{
    {{"linear", {Kind::linear, 1, "FACTOR"}},
     {"ntk", {Kind::ntk, 1, "FACTOR"}},
     {"dynamic", {Kind::dynamic, 3, "FACTOR,ORIGINAL,LENGTH"}},
     {"yarn", {Kind::yarn, 2, "FACTOR,ORIGINAL"}},
     {"llama3", {Kind::llama3, 2, "FACTOR,ORIGINAL[,LOW,HIGH]"}}}};

// llama3:8,8192 is the scaling of Llama 3.1: a factor of 8 beyond the 8192 positions it was trained on.
RotaryScaling scaling_of(const std::string& text) {
  const std::string option = "--rotary-scaling";
  const std::size_t colon = text.find(':');
  const std::string name = text.substr(0, colon);
  const ScalingWords words = chosen(option, name, kScalings);
  std::vector<std::string> parts;
  if (colon != std::string::npos) parts = split(text.substr(colon + 1));
  const bool llama = words.kind == Kind::llama3;
  if (parts.size() != words.least && !(llama && parts.size() == 4)) {
    throw BadValue(option, fmt::format("'{}' should be {}:{}", text, name, words.numbers));
  }
  RotaryScaling scaling{.kind = words.kind, .factor = real_number(option, parts[0])};
  if (parts.size() > 1) scaling.original_length = whole_number(option, parts[1], 1, kMostWhole);
  if (words.kind == Kind::dynamic) scaling.length = whole_number(option, parts[2], 1, kMostWhole);
  if (parts.size() == 4) {
    scaling.low_freq_factor = real_number(option, parts[2]);
    scaling.high_freq_factor = real_number(option, parts[3]);
  }
  return scaling;
}

}  // namespace

void add_rotary_flags(Command& command, RunOptions& options) {
  command.one(
      "--rotary", "half|interleaved", "Rotary position embedding (RoPE) of q and k: how dimensions are paired",
      [&](const std::string& text) { options.rotary = RotaryOptions{.pairs = chosen("--rotary", text, kPairs)}; });
  const auto more = [&](const char* name, const char* type, const char* help, const auto& set) {
    command.one(name, type, help, [&options, name = std::string(name), set](const std::string& text) {
      if (!options.rotary) throw BadValue(name, "requires --rotary half or --rotary interleaved");
      set(*options.rotary, text);
    });
  };
  more("--rotary-base", "X", "Rotary base (default 10000)",
       [](RotaryOptions& rotary, const std::string& text) { rotary.base = real_number("--rotary-base", text); });
  more("--rotary-size", "N", "Number of rotated dimensions per head (default: all)",
       [](RotaryOptions& rotary, const std::string& text) {
         rotary.size = whole_number("--rotary-size", text, 2, kMostWhole);
       });
  more("--rotary-scaling", "KIND:NUMBERS",
       "Context extension: linear, ntk, dynamic, yarn or llama3, such as llama3:8,8192",
       [](RotaryOptions& rotary, const std::string& text) { rotary.scaling = scaling_of(text); });
  command.one("--position", "N", "Position of the first token (default 0)",
              [&](const std::string& text) { options.position = whole_number("--position", text, 0, kMostWhole); });
}

}  // namespace rapt::cli
