// The two ways `rapt explain` draws a walk: as a page, and as a page about the wrong split.
#pragma once

#include <string>

#include "cli/explain/words.h"
#include "cli/terminal/page.h"
#include "exhibits/walk.h"
#include "exhibits/wrong_split.h"

namespace rapt::cli {

using exhibits::Habit;
using exhibits::HeadSummary;
using exhibits::kEmbedding;
using exhibits::Piece;
using exhibits::Sentence;
using exhibits::Walk;
using exhibits::WrongSplit;

void show_walk(Page& page, const Walk& walk, const Words& words);
void show_wrong_split(Page& page, const Walk& walk, const WrongSplit& wrong, const Words& words);

// "head 2 · first word 71%"
std::string head_title(const Words& words, const Walk& walk, std::int64_t head);
// How many tokens a page shows: at most 16, fewer on a narrow terminal.
std::int64_t tokens_shown(const Terminal& terminal, const Walk& walk);
// The title, the sentence, and the sizes.
void show_title(Page& page, const Walk& walk, const Words& words, std::string_view title);

}  // namespace rapt::cli
