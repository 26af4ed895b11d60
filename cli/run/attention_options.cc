// The flags of `rapt run` that are options of attention itself: rapt/attention.h says what each means.
#include <array>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "cli/command.h"
#include "cli/files/file_options.h"
#include "cli/run/options.h"

namespace rapt::cli {
namespace {

constexpr std::array<std::pair<std::string_view, MaskTrue>, 2> kMaskTrue{
    {{"keep", MaskTrue::keep}, {"drop", MaskTrue::drop}}};
constexpr std::array<std::pair<std::string_view, MaskOf>, 3> kMaskOf{
    {{"batch", MaskOf::batch}, {"heads", MaskOf::heads}, {"keys", MaskOf::keys}}};
constexpr std::array<std::pair<std::string_view, bool>, 2> kAligned{{{"top-left", false}, {"bottom-right", true}}};
constexpr std::array<std::pair<std::string_view, Engine>, 3> kEngines{
    {{"auto", Engine::automatic}, {"cpu", Engine::cpu}, {"reference", Engine::reference}}};

// 128,0: so many keys to the left and to the right; an empty side is open.
Window window_of(const std::string& text) {
  const std::vector<std::string> sides = split(text);
  if (sides.size() != 2) {
    throw BadValue("--window", fmt::format("'{}' is not LEFT,RIGHT: 128,0 is 128 keys back and none ahead, "
                                           "128, leaves the right side open",
                                           text));
  }
  const auto side = [](const std::string& part) {
    return part.empty() ? std::optional<std::int64_t>() : whole_number("--window", part, 0, kMostWhole);
  };
  return {side(sides[0]), side(sides[1])};
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
                      "A token sees none that come after it; as --align where Lq, Lk differ",
                      [&](const std::string& text) {
                        attention.causal = true;
                        if (!text.empty()) attention.alignment = aligned("--causal", text);
                      });
  command.text("--mask", "FILE", options.mask, "A mask: bool with --mask-true, or float, which is added");
  command.choice("--mask-true", options.mask_true, kMaskTrue, "What true means: the key is seen, or hidden");
  command.choice("--mask-of", options.mask_of, kMaskOf, "The mask is (B, Lq, Lk), (B*H, Lq, Lk), or (B, Lk)");
  command.one("--mask-fill", "X", "What the mask hides is not hidden, but scores X: -1e9",
              [&](const std::string& text) { options.mask_fill = real_number("--mask-fill", text); });
  command.one("--key-lengths", "LIST", "How many keys each row of the batch has: 5,7",
              [&](const std::string& text) { attention.key_lengths = whole_numbers("--key-lengths", text, 0); });
  command.one("--query-starts", "LIST", "Sequences lie end to end in one row: 0,3,8 are two",
              [&](const std::string& text) {
                attention.packed.query_starts = whole_numbers("--query-starts", text, 0);
                attention.packed.key_starts = attention.packed.query_starts;
              });
  command.one("--key-starts", "LIST", "The same of the keys (default: as the queries)",
              [&](const std::string& text) { attention.packed.key_starts = whole_numbers("--key-starts", text, 0); });
  command.one("--window", "L,R", "A token sees so many keys to its left and right",
              [&](const std::string& text) { attention.window = window_of(text); });
  command.one("--align", "top-left|bottom-right", "The first query stands at the first key, or the last at the last",
              [&](const std::string& text) { attention.alignment = aligned("--align", text); });
  command.one("--offset", "LIST", "The first query stands at this key; one for all, or one per row",
              [&](const std::string& text) {
                if (attention.alignment.kind != Alignment::Kind::unnamed) {
                  throw BadValue("--offset",
                                 "says where the first query stands, and so does --align; give one of them");
                }
                attention.alignment = Alignment::offsets(whole_numbers("--offset", text, -kMostWhole));
              });
}

void add_scores(Command& command, RunOptions& options) {
  AttentionOptions& attention = options.attention;
  command.one("--scale", "X", "Of the scores (default 1/sqrt(D))",
              [&](const std::string& text) { attention.scale = real_number("--scale", text); });
  command.one("--softcap", "X", "Scores stay between -X and X",
              [&](const std::string& text) { attention.softcap = real_number("--softcap", text); });
  command.one("--alibi-slopes", "LIST", "A key that is n away scores n slopes less; one slope for each head",
              [&](const std::string& text) {
                attention.alibi_slopes.clear();
                for (const std::string& part : split(text)) {
                  attention.alibi_slopes.push_back(real_number("--alibi-slopes", part));
                }
              });
  command.text("--sinks", "FILE", options.sinks, "(H): one more score in each head's softmax, of no key");
  command.one("--dropout", "X", "Drop weights at this rate, as in training",
              [&](const std::string& text) { options.dropout = real_number("--dropout", text, 0.0, 1.0); });
  command.one("--seed", "N", "Which weights those are (default 0)", [&](const std::string& text) {
    attention.dropout.seed =
        static_cast<std::uint64_t>(whole_number("--seed", text, 0, std::numeric_limits<std::int64_t>::max()));
  });
}

}  // namespace

void add_attention_flags(Command& command, RunOptions& options) {
  add_masks(command, options);
  add_scores(command, options);
  add_dtype(command, options.dtype, "Compute in this type: inputs and parameters are rounded to it");
  command.choice("--engine", options.attention.engine, kEngines, "Who computes (default: the fastest for the type)");
  command.one("--threads", "N", "At most so many (default: all)", [&](const std::string& text) {
    options.attention.threads = static_cast<int>(whole_number("--threads", text, 1, kMostThreads));
  });
}

}  // namespace rapt::cli
