// Text and column widths from src/exhibits, under the names that the command's files use, and counts in words.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include <fmt/format.h>

#include "exhibits/text.h"

namespace rapt::cli {

using exhibits::clip;
using exhibits::columns;
using exhibits::kReplacement;
using exhibits::next_code_point;
using exhibits::pad_left;
using exhibits::pad_right;
using exhibits::to_utf8;
using exhibits::wrap;

// "1 head", "12 heads".
inline std::string counted(std::int64_t count, std::string_view what) {
  return fmt::format("{} {}{}", count, what, count == 1 ? "" : "s");
}

}  // namespace rapt::cli
