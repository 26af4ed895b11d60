// The flags of `rapt run` that are options of attention itself; rapt/attention.h documents them.
#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "cli/command.h"
#include "cli/files/file_options.h"
#include "cli/run/options.h"
#include "rapt/option_table.h"

namespace rapt::cli {
namespace {

constexpr std::array<std::pair<std::string_view, MaskTrue>, 2> kMaskTrue{
    {{"keep", MaskTrue::keep}, {"drop", MaskTrue::drop}}};
constexpr std::array<std::pair<std::string_view, MaskOf>, 3> kMaskOf{
    {{"batch", MaskOf::batch}, {"heads", MaskOf::heads}, {"keys", MaskOf::keys}}};
constexpr std::array<std::pair<std::string_view, bool>, 2> kAligned{{{"top-left", false}, {"bottom-right", true}}};
constexpr std::array<std::pair<std::string_view, Engine>, 3> kEngines{
    {{"auto", Engine::automatic}, {"cpu", Engine::cpu}, {"reference", Engine::reference}}};

// 128,0: the number of keys to the left and to the right; an empty side is unlimited.
void set_sides(Window& window, const std::string& text) {
  const std::vector<std::string> sides = split(text);
  if (sides.size() != 2) {
    throw BadValue(
        "--window",
        fmt::format("'{}' is not LEFT,RIGHT; \"128,0\" is 128 keys before and none after, \"128,\" has no limit after",
                    text));
  }
  const auto side = [](const std::string& part) {
    return part.empty() ? std::optional<std::int64_t>() : whole_number("--window", part, 0, kMostWhole);
  };
  window.left = side(sides[0]);
  window.right = side(sides[1]);
}

// Flags for the fields of a window besides its sides, with the names and meanings of the option table.
void add_window_fields(Command& command, Window& window) {
  for_each_field(window, [&](std::string_view name, auto& field) {
    if constexpr (std::is_same_v<decltype(field), std::int64_t&>) {
      const auto row = std::find_if(option_table().begin(), option_table().end(), [&](const OptionRow& option) {
        return option.of == "Window" && option.name == name;
      });
      const std::string flag(row->command.name);
      std::string help(row->meaning);
      help[0] = static_cast<char>(help[0] - 'a' + 'A');
      command.one(flag, "N", help,
                  [&field, flag](const std::string& text) { field = whole_number(flag, text, 0, kMostWhole); });
    }
  });
}

Alignment aligned(const std::string& option, const std::string& text) {
  return chosen(option, text, kAligned) ? Alignment::bottom_right() : Alignment::top_left();
}

std::vector<std::int64_t> whole_numbers(const std::string& option, const std::string& text, std::int64_t least) {
  std::vector<std::int64_t> list;
  for (const std::string& part : split(text)) list.push_back(whole_number(option, part, least, kMostWhole));
  return list;
}

void add_masks(Command& command, RunOptions& options) {
  AttentionOptions& attention = options.attention;
  command.one_or_none("--causal", "[top-left|bottom-right]",
                      "Causal mask: each query sees the keys up to its own position; if Lq and Lk differ, give the "
                      "alignment (as --align)",
                      [&](const std::string& text) {
                        attention.causal = true;
                        if (!text.empty()) attention.alignment = aligned("--causal", text);
                      });
  command.text("--mask", "FILE", options.mask, "Mask: bool (see --mask-true), or float, added to the scores");
  command.choice("--mask-true", options.mask_true, kMaskTrue, "Meaning of true in a bool mask: keep or drop the key");
  command.choice("--mask-of", options.mask_of, kMaskOf, "Shape of the mask: (B, Lq, Lk), (B*H, Lq, Lk) or (B, Lk)");
  command.one("--mask-fill", "X", "Give masked keys the score X, such as -1e9, instead of excluding them",
              [&](const std::string& text) { options.mask_fill = real_number("--mask-fill", text); });
  command.one("--key-lengths", "LIST", "Number of valid keys in each batch row: 5,7",
              [&](const std::string& text) { attention.key_lengths = whole_numbers("--key-lengths", text, 0); });
  command.one("--query-starts", "LIST",
              "Packed sequences: the start of each, then the total length; 0,3,8 is two sequences",
              [&](const std::string& text) {
                attention.packed.query_starts = whole_numbers("--query-starts", text, 0);
                attention.packed.key_starts = attention.packed.query_starts;
              });
  command.one("--key-starts", "LIST", "The same for the keys (default: as --query-starts)",
              [&](const std::string& text) { attention.packed.key_starts = whole_numbers("--key-starts", text, 0); });
  command.one("--window", "L,R", "Sliding window: each query sees L keys before and R keys after its own position",
              [&](const std::string& text) { set_sides(attention.window, text); });
  add_window_fields(command, attention.window);
  command.one("--align", "top-left|bottom-right",
              "Align the first query with the first key, or the last query with the last key",
              [&](const std::string& text) { attention.alignment = aligned("--align", text); });
  command.one("--offset", "LIST", "Position of the first query among the keys: one value, or one per batch row",
              [&](const std::string& text) {
                if (attention.alignment.kind != Alignment::Kind::unnamed) {
                  throw BadValue("--offset",
                                 "cannot be combined with --align: both set the position of the first query");
                }
                attention.alignment = Alignment::offsets(whole_numbers("--offset", text, -kMostWhole));
              });
}

void add_scores(Command& command, RunOptions& options) {
  AttentionOptions& attention = options.attention;
  command.one("--scale", "X", "Softmax scale (default 1/sqrt(D))",
              [&](const std::string& text) { attention.scale = real_number("--scale", text); });
  command.one("--softcap", "X", "Limit scores to (-X, X): X * tanh(score / X)",
              [&](const std::string& text) { attention.softcap = real_number("--softcap", text); });
  command.one("--alibi-slopes", "LIST",
              "ALiBi slopes, one per head: n * slope is subtracted from the score of a key at distance n",
              [&](const std::string& text) {
                attention.alibi_slopes.clear();
                for (const std::string& part : split(text)) {
                  attention.alibi_slopes.push_back(real_number("--alibi-slopes", part));
                }
              });
  command.text("--sinks", "FILE", options.sinks,
               "Attention sinks (H): one extra logit per head in the softmax, without a value");
  command.one("--dropout", "X", "Attention dropout rate, as in training",
              [&](const std::string& text) { options.dropout = real_number("--dropout", text, 0.0, 1.0); });
  command.one("--seed", "N", "Dropout seed (default 0)", [&](const std::string& text) {
    attention.dropout.seed =
        static_cast<std::uint64_t>(whole_number("--seed", text, 0, std::numeric_limits<std::int64_t>::max()));
  });
}

}  // namespace

void add_attention_flags(Command& command, RunOptions& options) {
  add_masks(command, options);
  add_scores(command, options);
  add_dtype(command, options.dtype, "Compute in this type; inputs and parameters are converted to it");
  command.choice("--engine", options.attention.engine, kEngines,
                 "Engine (default: the fastest that supports the type)");
  command.one("--threads", "N", "Maximum number of threads (default: all cores)", [&](const std::string& text) {
    options.attention.threads = static_cast<int>(whole_number("--threads", text, 1, kMostThreads));
  });
}

}  // namespace rapt::cli
