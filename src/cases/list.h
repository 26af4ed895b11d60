// The one list of cases that every engine must pass.
#pragma once

#include <vector>

#include "cases/case.h"

namespace rapt::cases {

// Every option alone and in telling company, at sizes that meet every edge of a tile.
std::vector<CaseSpec> all_cases();

// A configuration drawn from everything the options allow, the same for one seed on every machine.
CaseSpec random_case(std::uint64_t seed);

}  // namespace rapt::cases
