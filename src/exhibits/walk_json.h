// The walk as data: `rapt explain --json`, and what the explorer draws.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "exhibits/walk.h"
#include "exhibits/wrong_split.h"

namespace rapt::exhibits {

nlohmann::ordered_json walk_as_json(const Walk& walk);
nlohmann::ordered_json wrong_split_as_json(const Walk& walk, const WrongSplit& wrong);

}  // namespace rapt::exhibits
