// A curve as lines of text: each character holds two by four Braille dots.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "cli/terminal/terminal.h"

namespace rapt::cli {

// Points (x, y), x ascending, y positive. Every line fits `width` columns. Fewer than two points give no lines.
std::vector<std::string> line_chart(const Terminal& terminal, const std::vector<std::pair<double, double>>& points,
                                    int width, int height);

}  // namespace rapt::cli
