// Text and column widths from src/exhibits, under the names that the command's files use.
#pragma once

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

}  // namespace rapt::cli
