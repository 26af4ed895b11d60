// A chart of an exhibit: several curves, each with its own symbol and colour.
#include <algorithm>
#include <cmath>
#include <cstddef>

#include <fmt/format.h>

#include "cli/explain/exhibit_blocks.h"
#include "cli/terminal/text.h"

namespace rapt::cli {
namespace {

using exhibits::Chart;
using exhibits::Series;

constexpr int kLabel = 8, kHeight = 9, kWidest = 64;
constexpr char kSigns[] = {'*', 'o', '+', 'x'};

double placed(double value, bool log) { return log ? std::log(value) : value; }
double back(double value, bool log) { return log ? std::exp(value) : value; }

std::string axis_text(double value) {
  if (value == 0) return "0";
  const double size = std::abs(value);
  return size >= 100   ? fmt::format("{:.0f}", value)
         : size >= 0.1 ? fmt::format("{:.2f}", value)
                       : fmt::format("{:.1e}", value);
}

// The height of the curve at x by linear interpolation, in screen coordinates.
double height_at(const Chart& chart, const Series& series, double x) {
  std::size_t after = 1;
  while (after + 1 < chart.x.size() && placed(chart.x[after], chart.log_x) < x) ++after;
  const double left = placed(chart.x[after - 1], chart.log_x), right = placed(chart.x[after], chart.log_x);
  const double t = std::clamp((x - left) / (right - left), 0.0, 1.0);
  return (1 - t) * placed(series.y[after - 1], chart.log_y) + t * placed(series.y[after], chart.log_y);
}

}  // namespace

std::vector<std::string> chart_lines(const Terminal& terminal, const Chart& chart, int width) {
  const int across = std::min(width, kWidest) - kLabel - 2;
  if (chart.x.size() < 2 || across < 8) return {};
  double top = -INFINITY, bottom = chart.log_y ? INFINITY : 0.0;
  for (const Series& series : chart.series) {
    for (const double y : series.y)
      top = std::max(top, placed(y, chart.log_y)), bottom = std::min(bottom, placed(y, chart.log_y));
  }
  if (!(top > bottom)) top = bottom + 1;
  const double first = placed(chart.x.front(), chart.log_x), last = placed(chart.x.back(), chart.log_x);

  const auto wide = static_cast<std::size_t>(across);
  std::vector<std::vector<int>> cells(kHeight, std::vector<int>(wide, -1));  // which series, or none
  for (std::size_t n = 0; n < chart.series.size(); ++n) {
    for (std::size_t c = 0; c < wide; ++c) {
      const double y =
          height_at(chart, chart.series[n], first + (last - first) * static_cast<double>(c) / (across - 1));
      const int row =
          std::clamp(static_cast<int>(std::lround((top - y) / (top - bottom) * (kHeight - 1))), 0, kHeight - 1);
      cells[static_cast<std::size_t>(row)][c] = static_cast<int>(n);
    }
  }
  const auto sign = [&](int n) {
    return terminal.colored(group_color(n), std::string(1, kSigns[static_cast<std::size_t>(n) % std::size(kSigns)]));
  };
  std::vector<std::string> lines;
  for (int row = 0; row < kHeight; ++row) {
    const bool labelled = row == 0 || row + 1 == kHeight || row == kHeight / 2;
    const double value = back(top + (bottom - top) * row / (kHeight - 1), chart.log_y);
    std::string line = terminal.dim(pad_left(labelled ? axis_text(value) : "", kLabel - 1) + " ┤");
    for (const int n : cells[static_cast<std::size_t>(row)]) line += n < 0 ? " " : sign(n);
    lines.push_back(std::move(line));
  }
  const std::string left = fmt::format("{} {:.0f}", chart.x_name, chart.x.front());
  const std::string right = fmt::format("{:.0f}", chart.x.back());
  const int gap = std::max(1, across - columns(left) - columns(right));
  lines.push_back(terminal.dim(fmt::format("{:{}}{}{:{}}{}", "", kLabel + 1, left, "", gap, right)));
  for (std::size_t n = 0; n < chart.series.size(); ++n) {
    const Series& series = chart.series[n];
    lines.push_back(
        fmt::format("{:{}}{} {}  {}", "", kLabel + 1, sign(static_cast<int>(n)), series.name,
                    terminal.dim(fmt::format("{} → {}", axis_text(series.y.front()), axis_text(series.y.back())))));
  }
  return lines;
}

}  // namespace rapt::cli
