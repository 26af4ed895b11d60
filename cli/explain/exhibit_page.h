// `rapt explain --question N`: an exhibit drawn in the terminal.
#pragma once

#include <vector>

#include "cli/terminal/page.h"
#include "exhibits/exhibit.h"

namespace rapt::cli {

void show_exhibit(Page& page, const exhibits::Exhibit& exhibit, exhibits::Lang lang);
void show_questions(Page& page, const std::vector<exhibits::Exhibit>& questions, exhibits::Lang lang);

}  // namespace rapt::cli
