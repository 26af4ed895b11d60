// The one list of cases that every engine must pass.
#pragma once

#include <vector>

#include "cases/case.h"

namespace rapt::cases {

// Every option alone and in relevant combinations, at sizes that cover every edge of a tile.
std::vector<CaseSpec> all_cases();

// The list once more in every pair of storage types that q and k, v may have, with weights and scores at every stage
// asked for.
std::vector<CaseSpec> all_cases_in_every_type();

// A configuration drawn from everything the options allow, the same for one seed on every machine.
CaseSpec random_case(std::uint64_t seed);

}  // namespace rapt::cases
