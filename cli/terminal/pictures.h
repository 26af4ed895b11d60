// Matrices as terminal pictures. A Block is a rectangle of text: every line takes exactly `width` columns, so that
// blocks can be placed next to each other regardless of colour codes.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cli/terminal/terminal.h"
#include "rapt/tensor.h"

namespace rapt::cli {

inline constexpr int kNarrowestCell = 4;  // of a heat map: ".83 "

struct Block {
  std::vector<std::string> lines;
  int width = 0;
};

// Places as many blocks in a row as fit in `width`.
std::vector<std::string> arrange(const std::vector<Block>& blocks, int width, int gap);

// The names of tokens, as labels of rows ("4 the") and columns ("the").
class Labels {
 public:
  Labels(const std::vector<std::string>& tokens, std::int64_t shown);

  std::int64_t shown() const { return shown_; }
  int row_width() const { return row_width_; }
  int widest() const { return widest_; }                         // of the names alone
  std::string row(std::int64_t i) const;                         // "4 the", padded to row_width()
  std::string name(std::int64_t i) const;                        // "4 the", not padded
  std::string column(std::int64_t j, int width) const;           // the name, or its number if the name is too wide
  std::string header(const Terminal& terminal, int cell) const;  // the line above a table

 private:
  std::vector<std::string> tokens_;
  std::int64_t shown_;
  int digits_;
  int widest_;
  int row_width_;
};

// Weights of one head, (L, L): a heat map with the numbers in it. `scores` tells which keys are masked (−inf).
Block weight_map(const Terminal& terminal, const Labels& labels, const std::string& title,
                 const ConstTensorView& weights, const ConstTensorView& scores, int cell);
// The width of a cell with which two maps, if there are two, fit next to each other: 5 columns, or 4.
int weight_map_cell(const Terminal& terminal, const Labels& labels, std::int64_t maps);

// A weight as a coloured cell, or as a shade of grey.
std::string shade(const Terminal& terminal, double weight, int width);

// Signed numbers, one row of E: small coloured cells with a gap every `group` (without colour: # + · - =).
int strip_cell(const Terminal& terminal);  // columns per number
std::string strip(const Terminal& terminal, const ConstTensorView& row, std::int64_t group, double largest);
// Signed numbers in digits, coloured by magnitude: as many as fit in `width`.
std::string numbers(const Terminal& terminal, const ConstTensorView& row, double largest, int cell, int width);
// The legend of strip's cells.
std::string strip_legend(const Terminal& terminal, double largest);

double largest_magnitude(const ConstTensorView& view);  // of the finite values of any view of rank 1 to 4

}  // namespace rapt::cli
