// `rapt check --bits`: the bits of a row depend on its own numbers and on options alone. Not on the batch and its
// order, on how queries are cut into calls, on where memory is, or on what else the device does.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cli/check/check_run.h"

namespace rapt::cli {

// One way to make the same row again, over all cases.
struct BitsScore {
  CheckTarget target;
  std::string what;          // "alone in a batch of 1"
  std::int64_t cases = 0;    // in which it is possible
  std::int64_t differ = 0;   //
  std::string first_case{};  // that differs
};

struct BitsReport {
  std::vector<BitsScore> scores;
  std::int64_t left_out = 0;  // cases that an engine does not compute
  double seconds = 0.0;

  bool good() const;
};

BitsReport run_bits(const CheckPlan& plan, const CheckProgress& progress);

}  // namespace rapt::cli
