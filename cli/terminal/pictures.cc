#include "cli/terminal/pictures.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>

#include <fmt/format.h>

#include "cli/terminal/text.h"

namespace rapt::cli {
namespace {

constexpr int kWidestName = 8;

std::string spaces(int count) { return std::string(static_cast<std::size_t>(std::max(0, count)), ' '); }

// ".83", "1.0", or "·" if it rounds to zero.
std::string short_weight(double weight) {
  if (weight >= 0.995) return "1.0";
  if (weight < 0.005) return "·";
  return fmt::format("{:.2f}", weight).substr(1);
}

std::string plain_sign(double fraction) {
  if (fraction > 0.6) return "#";
  if (fraction > 0.15) return "+";
  if (fraction < -0.6) return "=";
  if (fraction < -0.15) return "-";
  return "·";
}

}  // namespace

std::vector<std::string> arrange(const std::vector<Block>& blocks, int width, int gap) {
  std::vector<std::string> lines;
  for (std::size_t begin = 0; begin < blocks.size();) {
    std::size_t end = begin + 1;
    int used = blocks[begin].width;
    while (end < blocks.size() && used + gap + blocks[end].width <= width) used += gap + blocks[end++].width;
    std::size_t height = 0;
    for (std::size_t i = begin; i < end; ++i) height = std::max(height, blocks[i].lines.size());
    if (begin > 0) lines.emplace_back();
    for (std::size_t row = 0; row < height; ++row) {
      std::string line;
      for (std::size_t i = begin; i < end; ++i) {
        if (i > begin) line += spaces(gap);
        line += row < blocks[i].lines.size() ? blocks[i].lines[row] : spaces(blocks[i].width);
      }
      lines.push_back(std::move(line));
    }
    begin = end;
  }
  return lines;
}

Labels::Labels(const std::vector<std::string>& tokens, std::int64_t shown)
    : tokens_(tokens), shown_(shown), digits_(shown > 10 ? 2 : 1), widest_(0), row_width_(0) {
  for (std::int64_t i = 0; i < shown; ++i) {
    widest_ = std::max(widest_, std::min(kWidestName, columns(tokens_[static_cast<std::size_t>(i)])));
  }
  row_width_ = digits_ + 1 + widest_;
}

std::string Labels::name(std::int64_t i) const {
  return fmt::format("{:>{}} {}", i, digits_, clip(tokens_[static_cast<std::size_t>(i)], kWidestName));
}

std::string Labels::row(std::int64_t i) const { return pad_right(name(i), row_width_); }

std::string Labels::column(std::int64_t j, int width) const {
  const std::string& token = tokens_[static_cast<std::size_t>(j)];
  const int room = width - 1;  // a gap after each, as in the cells below
  const bool legible = widest_ <= room || room >= 3;
  return pad_left(legible ? clip(token, room) : fmt::format("{}", j), room) + " ";
}

std::string Labels::header(const Terminal& terminal, int cell) const {
  std::string line;
  for (std::int64_t j = 0; j < shown_; ++j) line += column(j, cell);
  return terminal.dim(line);
}

int weight_map_cell(const Terminal& terminal, const Labels& labels, std::int64_t maps) {
  for (int across = maps > 1 ? 2 : 1; across > 0; --across) {
    for (const int cell : {5, kNarrowestCell}) {
      const int one = labels.row_width() + 1 + cell * static_cast<int>(labels.shown());
      if (2 + across * one + (across - 1) * 2 <= terminal.width()) return cell;
    }
  }
  return kNarrowestCell;
}

Block weight_map(const Terminal& terminal, const Labels& labels, const std::string& title,
                 const ConstTensorView& weights, const ConstTensorView& scores, int cell) {
  Block block;
  const int left = labels.row_width() + 1;
  block.width = left + cell * static_cast<int>(labels.shown());
  block.lines.push_back(terminal.bold(pad_right(clip(title, block.width), block.width)));
  block.lines.push_back(spaces(left) + labels.header(terminal, cell));
  for (std::int64_t i = 0; i < labels.shown(); ++i) {
    std::string line = labels.row(i) + " ";
    for (std::int64_t j = 0; j < labels.shown(); ++j) {
      const bool hidden = std::isinf(scores.at<double>(i, j));
      if (hidden) {
        line += terminal.dim(pad_left("×", cell - 1) + " ");
        continue;
      }
      const double weight = weights.at<double>(i, j);
      line += terminal.heat(weight, pad_left(short_weight(weight), cell - 1) + " ");
    }
    block.lines.push_back(std::move(line));
  }
  return block;
}

std::string shade(const Terminal& terminal, double weight, int width) {
  if (terminal.has_color()) return terminal.heat(weight, spaces(width));
  constexpr std::array<std::string_view, 5> kShades{"·", "░", "▒", "▓", "█"};
  const std::string_view mark = kShades[std::min<std::size_t>(4, static_cast<std::size_t>(weight * 5.0))];
  std::string text;
  for (int n = 0; n < width; ++n) text += mark;
  return text;
}

int strip_cell(const Terminal& terminal) {
  constexpr int kRoomForTwo = 70;  // for 24 numbers of two columns, a name and the gaps between heads
  return terminal.width() >= kRoomForTwo ? 2 : 1;
}

std::string strip(const Terminal& terminal, const ConstTensorView& row, std::int64_t group, double largest) {
  std::string line;
  const std::int64_t count = row.size(0);
  const bool gaps = group > 2;
  const auto cell = static_cast<std::size_t>(strip_cell(terminal));
  for (std::int64_t d = 0; d < count; ++d) {
    if (gaps && d > 0 && d % group == 0) line += ' ';
    const double fraction = largest > 0 ? row.at<double>(d) / largest : 0;
    line += terminal.has_color() ? terminal.signed_heat(fraction, std::string(cell, ' '))
                                 : pad_right(plain_sign(fraction), static_cast<int>(cell));
  }
  return line;
}

std::string strip_legend(const Terminal& terminal, double largest) {
  if (!terminal.has_color()) {
    return fmt::format("= < {:.1f}  - < {:.1f}  · 0  + > {:.1f}  # > {:.1f}", -0.6 * largest, -0.15 * largest,
                       0.15 * largest, 0.6 * largest);
  }
  std::string line = fmt::format("{:.1f} ", -largest);
  for (int step = -4; step <= 4; ++step) line += terminal.signed_heat(step / 4.0, "  ");
  return line + fmt::format(" +{:.1f}", largest);
}

std::string numbers(const Terminal& terminal, const ConstTensorView& row, double largest, int cell, int width) {
  std::string line;
  const std::int64_t count = row.size(0);
  const std::int64_t room = (width - 2) / cell;
  const std::int64_t shown = count * cell <= width ? count : std::max<std::int64_t>(1, room);
  for (std::int64_t d = 0; d < shown; ++d) {
    const double value = row.at<double>(d);
    if (std::isinf(value)) {
      line += terminal.dim(pad_left("-inf", cell - 1) + " ");
      continue;
    }
    const std::string text = fmt::format("{:>{}.2f} ", std::abs(value) < 0.005 ? 0.0 : value, cell - 1);
    line += terminal.signed_heat(largest > 0 ? value / largest : 0, text);
  }
  return shown < count ? line + " …" : line;
}

double largest_magnitude(const ConstTensorView& view) {
  if (view.rank() > 1) {
    double largest = 0;
    for (std::int64_t i = 0; i < view.size(0); ++i) largest = std::max(largest, largest_magnitude(view.select(0, i)));
    return largest;
  }
  double largest = 0;
  for (std::int64_t i = 0; i < view.size(0); ++i) {
    const double magnitude = std::abs(view.at<double>(i));
    if (std::isfinite(magnitude)) largest = std::max(largest, magnitude);
  }
  return largest;
}

}  // namespace rapt::cli
