// `rapt check --bits` checks that the bits of a row depend only on the row's own inputs and on the options: not on the
// batch and its order, on how queries are split into calls, on the location of memory, or on other work of the device.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cli/check/check_run.h"

namespace rapt::cli {

// The result of one way to compute the same rows again, over all cases.
struct BitsScore {
  CheckTarget target;
  std::string what;          // "alone in a batch of 1"
  std::int64_t cases = 0;    // number of cases that allow this way
  std::int64_t differ = 0;   // number of cases whose bits differ
  std::string first_case{};  // the first case whose bits differ
};

struct BitsReport {
  std::vector<BitsScore> scores;
  std::int64_t left_out = 0;  // number of cases that the engine does not support
  double seconds = 0.0;

  bool good() const;
};

BitsReport run_bits(const CheckPlan& plan, const CheckProgress& progress);

}  // namespace rapt::cli
