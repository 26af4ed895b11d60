// The one list of cases that every engine must pass.
#pragma once

#include <vector>

#include "cases/case.h"

namespace rapt::cases {

// Every option alone and in relevant combinations, at sizes that cover every tile boundary.
std::vector<CaseSpec> all_cases();

// The list again in every pair of storage types for q and for k, v, with weights and with scores at every stage.
std::vector<CaseSpec> all_cases_in_every_type();

// A random choice of everything that the options allow; a seed gives the same case on every machine.
CaseSpec random_case(std::uint64_t seed);

}  // namespace rapt::cases
