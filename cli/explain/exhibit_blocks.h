// The blocks of an exhibit as rectangles of text.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "cli/terminal/pictures.h"
#include "cli/terminal/terminal.h"
#include "exhibits/exhibit.h"

namespace rapt::cli {

// "✓ ", "✗ " or nothing.
std::string mood_mark(exhibits::Mood mood);

struct MatrixBlock : Block {
  std::size_t title_lines = 0;  // to align blocks that are side by side
};

// A matrix; split by columns into several blocks if it does not fit in `width`.
std::vector<MatrixBlock> matrix_blocks(const Terminal& terminal, const exhibits::Matrix& matrix, int width);
// Lines of at most `width` columns: long cells wrap.
std::vector<std::string> table_lines(const Terminal& terminal, const exhibits::Table& table, int width);
std::vector<std::string> chart_lines(const Terminal& terminal, const exhibits::Chart& chart, int width);

}  // namespace rapt::cli
