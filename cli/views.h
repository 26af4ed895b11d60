// The three ways `rapt explain` shows a walk: as a page, as a page about the wrong split, and as data.
#pragma once

#include <string>

#include <nlohmann/json_fwd.hpp>

#include "page.h"
#include "walk.h"
#include "words.h"
#include "wrong_split.h"

namespace rapt::cli {

void show_walk(Page& page, const Walk& walk, const Words& words);
void show_wrong_split(Page& page, const Walk& walk, const WrongSplit& wrong, const Words& words);
nlohmann::ordered_json walk_as_json(const Walk& walk);
nlohmann::ordered_json wrong_split_as_json(const Walk& walk, const WrongSplit& wrong);

// "head 2 · first word 71%"
std::string head_title(const Words& words, const Walk& walk, std::int64_t head);
// How many tokens a page shows: at most 16, fewer on a narrow terminal.
std::int64_t tokens_shown(const Terminal& terminal, const Walk& walk);
// The title, the sentence, and the sizes.
void show_title(Page& page, const Walk& walk, const Words& words, std::string_view title);

}  // namespace rapt::cli
