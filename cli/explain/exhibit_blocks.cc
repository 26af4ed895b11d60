#include "cli/explain/exhibit_blocks.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <utility>

#include <fmt/format.h>

#include "cli/terminal/text.h"

namespace rapt::cli {
namespace {

using exhibits::Matrix;
using exhibits::Mood;
using exhibits::Paint;
using exhibits::Table;

constexpr int kWidestLabel = 16, kWidestColumn = 8;

std::string spaces(int count) { return std::string(static_cast<std::size_t>(std::max(0, count)), ' '); }

double largest_of(const Matrix& matrix) {
  double largest = 0;
  for (const double value : matrix.values) {
    if (std::isfinite(value)) largest = std::max(largest, std::abs(value));
  }
  return largest;
}

// Without colours, a letter after the number shows the group.
std::string group_mark(int group) { return std::string(1, static_cast<char>('a' + group)); }

std::string number_text(const Terminal& terminal, const Matrix& matrix, std::size_t n) {
  const double value = matrix.values[n];
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
  if (matrix.paint == Paint::weight) {  // ".83", like all weights of this command
    if (value < 0.005) return "·";
    const std::string text = fmt::format("{:.2f}", value);
    return value < 0.995 ? text.substr(1) : text;
  }
  std::string text = fmt::format("{:.{}f}", value, matrix.decimals);
  if (text.starts_with('-') && text.find_first_not_of("-0.") == std::string::npos) text.erase(0, 1);
  if (matrix.paint == Paint::group && !terminal.has_color()) text += group_mark(matrix.groups[n]);
  return text;
}

std::string painted(const Terminal& terminal, const Matrix& matrix, std::size_t n, double largest,
                    const std::string& text) {
  const double value = matrix.values[n];
  switch (matrix.paint) {
    case Paint::weight: return std::isfinite(value) ? terminal.heat(std::min(value, 1.0), text) : terminal.bold(text);
    case Paint::number:
      if (!std::isfinite(value)) return terminal.dim(text);
      return terminal.signed_heat(largest > 0 ? value / largest : 0, text);
    case Paint::group: return terminal.cell(group_color(matrix.groups[n]), text);
    case Paint::none: break;
  }
  return text;
}

// A legend of the groups, in lines of exactly `width` columns.
std::vector<std::string> legend_lines(const Terminal& terminal, const Matrix& matrix, int width) {
  std::vector<std::string> lines;
  std::string line;
  int used = 0;
  const auto end_line = [&] { lines.push_back(line + spaces(width - used)), line.clear(), used = 0; };
  for (std::size_t g = 0; g < matrix.legend.size(); ++g) {
    const int group = static_cast<int>(g);
    const std::string mark = terminal.has_color() ? "  " : group_mark(group);
    const std::string name = clip(matrix.legend[g], width - columns(mark) - 1);
    const int wide = columns(mark) + 1 + columns(name);
    if (used > 0 && used + 2 + wide > width) end_line();
    if (used > 0) line += "  ", used += 2;
    line += (terminal.has_color() ? terminal.cell(group_color(group), mark) : mark) + " " + name;
    used += wide;
  }
  if (used > 0) end_line();
  return lines;
}

// Columns `first` … `last` − 1 of a matrix.
MatrixBlock matrix_block(const Terminal& terminal, const Matrix& matrix, std::size_t first, std::size_t last, int left,
                         int cell, int width) {
  constexpr int kWidestTitle = 34;  // a title is wider only if the cells are
  MatrixBlock block;
  const std::size_t across = matrix.columns.size();
  const std::string title = mood_mark(matrix.mood) + matrix.title;
  const int cells = left + cell * static_cast<int>(last - first);
  block.width = std::min(width, std::max(cells, std::min(columns(title), kWidestTitle)));
  for (const std::string& line : wrap(title, block.width)) {
    block.lines.push_back(terminal.bold(pad_right(line, block.width)));
  }
  block.title_lines = block.lines.size();
  std::string header = spaces(left);
  for (std::size_t j = first; j < last; ++j) header += pad_left(clip(matrix.columns[j], cell - 1), cell - 1) + " ";
  block.lines.push_back(terminal.dim(pad_right(header, block.width)));
  const double largest = largest_of(matrix);
  for (std::size_t i = 0; i < matrix.rows.size(); ++i) {
    std::string line = pad_right(clip(matrix.rows[i], left - 1), left);
    for (std::size_t j = first; j < last; ++j) {
      const std::size_t n = i * across + j;
      line += painted(terminal, matrix, n, largest, pad_left(number_text(terminal, matrix, n), cell - 1) + " ");
    }
    block.lines.push_back(line + spaces(block.width - cells));
  }
  if (last < across) return block;
  for (std::string& line : legend_lines(terminal, matrix, block.width)) block.lines.push_back(std::move(line));
  return block;
}

bool is_number(const std::string& text) {
  return text == "NaN" || text == "-inf" || text == "inf" ||
         (text.find_first_of("0123456789") != std::string::npos &&
          text.find_first_not_of("+-0123456789.e") == std::string::npos);
}

}  // namespace

std::string mood_mark(Mood mood) { return mood == Mood::right ? "✓ " : mood == Mood::wrong ? "✗ " : ""; }

std::vector<MatrixBlock> matrix_blocks(const Terminal& terminal, const Matrix& matrix, int width) {
  int left = 0, cell = 0;
  for (const std::string& row : matrix.rows) left = std::max(left, std::min(kWidestLabel, columns(row)));
  for (std::size_t n = 0; n < matrix.values.size(); ++n) {
    cell = std::max(cell, columns(number_text(terminal, matrix, n)));
  }
  for (const std::string& column : matrix.columns) cell = std::max(cell, std::min(kWidestColumn, columns(column)));
  ++left, ++cell;
  const auto fits = static_cast<std::size_t>(std::max(1, (width - left) / cell));
  std::vector<MatrixBlock> blocks;
  for (std::size_t first = 0; first < matrix.columns.size(); first += fits) {
    const std::size_t last = std::min(first + fits, matrix.columns.size());
    blocks.push_back(matrix_block(terminal, matrix, first, last, left, cell, width));
  }
  return blocks;
}

std::vector<std::string> table_lines(const Terminal& terminal, const Table& table, int width) {
  constexpr int kGap = 2;
  std::vector<std::vector<std::string>> rows{table.header};
  rows.insert(rows.end(), table.rows.begin(), table.rows.end());
  std::vector<int> widths(table.header.size(), 0);
  for (const auto& row : rows) {
    for (std::size_t j = 0; j < row.size(); ++j) widths[j] = std::max(widths[j], columns(row[j]));
  }
  std::vector<bool> numeric(widths.size(), true);  // such columns are right-aligned
  for (const auto& row : table.rows) {
    for (std::size_t j = 0; j < row.size(); ++j) numeric[j] = numeric[j] && (row[j].empty() || is_number(row[j]));
  }
  int total = kGap * (static_cast<int>(widths.size()) - 1);
  for (const int each : widths) total += each;
  for (; total > width; --total) {
    int& widest = *std::max_element(widths.begin(), widths.end());
    if (widest <= 4) break;
    --widest;
  }

  std::vector<std::string> lines;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    std::vector<std::vector<std::string>> cells;
    std::size_t height = 1;
    for (std::size_t j = 0; j < rows[i].size(); ++j) {
      cells.push_back(wrap(rows[i][j], widths[j]));
      height = std::max(height, cells.back().size());
    }
    for (std::size_t n = 0; n < height; ++n) {
      std::string line;
      for (std::size_t j = 0; j < cells.size(); ++j) {
        const std::string text = n < cells[j].size() ? clip(cells[j][n], widths[j]) : "";
        line += (j > 0 ? spaces(kGap) : "") + (numeric[j] ? pad_left(text, widths[j]) : pad_right(text, widths[j]));
      }
      lines.push_back(i == 0 ? terminal.dim(line) : line);
    }
  }
  return lines;
}

}  // namespace rapt::cli
