// The sections of the page that `rapt show` prints.
#pragma once

#include "cli/show/reading.h"
#include "cli/terminal/page.h"

namespace rapt::cli {

void show_reading_title(Page& page, const Reading& reading);
void show_overview(Page& page, const Reading& reading);  // every head of every layer
void show_layer(Page& page, const Reading& reading);     // the heads of one layer, in words
void show_head(Page& page, const Reading& reading);      // the map of one head
void show_token(Page& page, const Reading& reading);     // what one token attends to in every head
void show_change(Page& page, const Reading& reading);    // what switching heads off changes
void show_next(Page& page, const Reading& reading);      // the most likely tokens
void show_generated(Page& page, const Reading& reading);

std::string reading_json(const Reading& reading);

}  // namespace rapt::cli
