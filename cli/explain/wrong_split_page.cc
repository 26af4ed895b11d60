// The page of `rapt explain --wrong-split`: what each head holds under both splits, and what breaks.
#include <algorithm>
#include <cmath>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "cli/explain/views.h"
#include "cli/terminal/text.h"

namespace rapt::cli {
namespace {

// Memory, one token per line: each number is marked and coloured by the head it goes to. The right split cuts every
// token; the wrong one cuts the sentence.
Block memory(const Terminal& terminal, const Walk& walk, const Labels& labels, std::string_view title, bool wrong) {
  static constexpr std::string_view kDigits = "0123456789abcdefghijklmn";  // E heads at most
  Block block;
  block.width = labels.row_width() + 2 + static_cast<int>(kEmbedding);
  block.lines.push_back(terminal.bold(pad_right(title, block.width)));
  for (std::int64_t i = 0; i < labels.shown(); ++i) {
    std::string line = labels.row(i) + "  ";
    for (std::int64_t d = 0; d < kEmbedding; ++d) {
      const std::int64_t place = i * kEmbedding + d;
      const std::int64_t head = wrong ? place / (walk.length * walk.head_size) : d / walk.head_size;
      line += terminal.cell(group_color(head), kDigits.substr(static_cast<std::size_t>(head), 1));
    }
    block.lines.push_back(std::move(line));
  }
  return block;
}

// What one head holds: "4 the 12–17" per row.
Block holdings(const Terminal& terminal, const Walk& walk, const Labels& labels, const std::string& title, bool wrong,
               std::int64_t head) {
  const std::int64_t d = walk.head_size;
  const auto text_of = [&](const Piece& piece) {
    const std::string range =
        d == 1 ? fmt::format("{}", piece.first) : fmt::format("{}–{}", piece.first, piece.first + d - 1);
    const std::string name = piece.token < labels.shown() ? labels.row(piece.token) : fmt::format("{}", piece.token);
    return fmt::format(" {} {}", pad_right(name, labels.row_width()), pad_left(range, 5));
  };
  Block block;
  block.width = std::max(labels.row_width() + 6 + 2, columns(title));
  block.lines.push_back(terminal.bold(pad_right(title, block.width)));
  for (std::int64_t i = 0; i < labels.shown(); ++i) {
    const Piece piece = wrong ? wrong_piece(walk, head, i) : Piece{i, head * d};
    block.lines.push_back(terminal.cell(group_color(piece.token), pad_right(text_of(piece), block.width)));
  }
  return block;
}

}  // namespace

void show_wrong_split(Page& page, const Walk& walk, const WrongSplit& wrong, const Words& words) {
  const Terminal& terminal = page.terminal();
  const Labels labels(walk.sentence.tokens, tokens_shown(terminal, walk));
  const std::string right_code = "view(B, L, H, D).transpose(1, 2)";
  const std::string wrong_code = "view(B, H, L, D)";

  show_title(page, walk, words, words.wrong_title);
  page.heading(right_code + "  ≠  " + wrong_code, "");
  page.prose(words.wrong_intro);
  const ConstTensorView right_view = split_heads(walk.q.view(), walk.heads);
  const ConstTensorView wrong_view = walk.q.view().reshape({1, walk.heads, walk.length, walk.head_size});
  page.line();
  const int code = page.width() < 80 ? 0 : columns(right_code) + 2;  // the heading names them too
  page.line(terminal.dim(fmt::format("{:{}}{:16}strides", "", 7 + code, "shape")));
  for (const bool is_wrong : {false, true}) {
    const ConstTensorView& view = is_wrong ? wrong_view : right_view;
    page.line(fmt::format("{}{}{:16}{}", pad_right(is_wrong ? words.wrong_name : words.right_name, 7),
                          code == 0 ? "" : pad_right(is_wrong ? wrong_code : right_code, code), to_string(view.shape()),
                          to_string(view.strides())));
  }
  page.line();
  page.prose(say(words.wrong_memory, walk.q.count()));
  page.lines(arrange(
      {memory(terminal, walk, labels, words.right_name, false), memory(terminal, walk, labels, words.wrong_name, true)},
      page.room(), 3));

  page.heading("split_heads", to_string(right_view.shape()));
  page.prose(words.wrong_holds);
  for (const bool is_wrong : {false, true}) {
    std::vector<Block> blocks;
    for (std::int64_t h = 0; h < walk.heads; ++h) {
      const std::string title =
          fmt::format("{} · {}", is_wrong ? words.wrong_name : words.right_name, say(words.head, h));
      blocks.push_back(holdings(terminal, walk, labels, title, is_wrong, h));
    }
    page.line();
    page.lines(arrange(blocks, page.room(), 2));
  }
  if (wrong.misplaced_rows == 0) {
    page.line();
    page.prose(say(words.wrong_same, walk.heads, walk.length));
    return;
  }
  page.prose(say(words.wrong_rows, wrong.misplaced_rows, walk.heads * walk.length));

  page.heading("softmax", fmt::format("weights {}", to_string(walk.weights.shape())));
  page.prose(words.wrong_weights);
  page.line();
  const int cell = weight_map_cell(terminal, labels, 2 * walk.heads);
  std::vector<Block> maps;
  for (std::int64_t h = 0; h < walk.heads; ++h) {
    const ConstTensorView scores = walk.masked.view().select(0, 0).select(0, h);
    maps.push_back(weight_map(terminal, labels, fmt::format("{} · {}", words.right_name, head_title(words, walk, h)),
                              walk.weights.view().select(0, 0).select(0, h), scores, cell));
    maps.push_back(weight_map(terminal, labels, fmt::format("{} · {}", words.wrong_name, say(words.head, h)),
                              wrong.weights.view().select(0, 0).select(0, h), scores, cell));
  }
  page.lines(arrange(maps, page.room(), 2));

  page.heading(words.breaks, "");
  page.prose(fmt::format("✗ {}", say(words.weights_differ, wrong.weights_difference)));
  page.prose(fmt::format("✗ {}", say(words.output_differs, 100 * wrong.output_difference)));
  page.prose(words.leak);
  page.prose(fmt::format("✓ {}", say(words.leak_right, wrong.leaks_right.size(), walk.length - 1)));
  page.prose(fmt::format("✗ {}", say(words.leak_wrong, wrong.leaks_wrong.size(), walk.length - 1)));
  page.line();
  page.prose(words.why_right);
}

}  // namespace rapt::cli
