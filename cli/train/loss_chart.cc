#include "cli/train/loss_chart.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

#include <fmt/format.h>

#include "cli/terminal/text.h"

namespace rapt::cli {
namespace {

constexpr Rgb kLine{62, 138, 206};
constexpr int kLabel = 7;  // columns of the labels at the left, and the axis

// The dots of a Braille character, by column and row: U+2800 is empty.
constexpr char32_t kDots[2][4] = {{0x01, 0x02, 0x04, 0x40}, {0x08, 0x10, 0x20, 0x80}};

// The curve's y at x, by linear interpolation.
double between(const std::vector<std::pair<double, double>>& points, double x) {
  const auto after = std::find_if(points.begin() + 1, points.end() - 1, [x](const auto& p) { return p.first >= x; });
  const auto before = after - 1;
  const double t = std::clamp((x - before->first) / (after->first - before->first), 0.0, 1.0);
  return (1.0 - t) * before->second + t * after->second;
}

}  // namespace

std::vector<std::string> line_chart(const Terminal& terminal, const std::vector<std::pair<double, double>>& points,
                                    int width, int height) {
  if (points.size() < 2) return {};
  const int across = 2 * (width - kLabel - 1), down = 4 * height;
  double top = 0.0, bottom = 0.0, lowest = INFINITY;
  for (const auto& [x, y] : points) {
    if (std::isfinite(y)) top = std::max(top, y), lowest = std::min(lowest, y);
  }
  if (lowest > top / 3) bottom = lowest - (top - lowest) / 8;  // far from 0: an axis from 0 would flatten it
  if (across < 2 || top <= bottom) return {};

  std::vector<std::u32string> cells(static_cast<std::size_t>(height),
                                    std::u32string(static_cast<std::size_t>(across / 2), 0x2800));
  const double first = points.front().first, last = points.back().first;
  int previous = -1;
  for (int column = 0; column < across; ++column) {
    const double y = between(points, first + (last - first) * column / (across - 1));
    if (!std::isfinite(y)) continue;
    const int row = std::clamp(static_cast<int>(std::lround((top - y) / (top - bottom) * (down - 1))), 0, down - 1);
    // A steep segment starts at the height of the previous dot.
    const int from = previous < 0 ? row : previous + (row > previous ? 1 : row < previous ? -1 : 0);
    for (int at = std::min(from, row); at <= std::max(from, row); ++at) {
      cells[static_cast<std::size_t>(at / 4)][static_cast<std::size_t>(column / 2)] |= kDots[column % 2][at % 4];
    }
    previous = row;
  }

  std::vector<std::string> lines;
  for (int row = 0; row < height; ++row) {
    std::string dots;
    for (const char32_t cell : cells[static_cast<std::size_t>(row)]) dots += cell == 0x2800 ? " " : to_utf8(cell);
    const bool labelled = row == 0 || row + 1 == height || row == height / 2;
    const double value = top + (bottom - top) * row / (height - 1);
    const std::string label = labelled ? fmt::format("{:.2f}", value) : "";
    lines.push_back(terminal.dim(pad_left(label, kLabel - 1) + " ┤") + terminal.colored(kLine, dots));
  }
  const std::string left = fmt::format("step {:.0f}", first), right = fmt::format("{:.0f}", last);
  const int gap = std::max(1, across / 2 - columns(left) - columns(right));
  lines.push_back(
      terminal.dim(std::string(kLabel + 1, ' ') + left + std::string(static_cast<std::size_t>(gap), ' ') + right));
  return lines;
}

}  // namespace rapt::cli
