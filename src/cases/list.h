// The one list of cases that every engine must pass.
#pragma once

#include <vector>

#include "cases/case.h"

namespace rapt::cases {

// Every option alone and in relevant combinations, at sizes that cover every tile boundary.
std::vector<CaseSpec> all_cases();

// The f32 cases of the list in every pair of f32, bf16 and f16 for q and for k, v; a case without captures gets all
// stages and mean weights.
std::vector<CaseSpec> all_cases_in_every_type();

// A case with random shapes, types (except f64) and options; a seed gives the same case on every machine.
CaseSpec random_case(std::uint64_t seed);

}  // namespace rapt::cases
