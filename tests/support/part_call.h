// Runs a case in parts: some batch rows, kv heads or queries, against the keys up to their position. Each part must
// have the same bits as in the whole call.
#pragma once

#include <cstdint>
#include <vector>

#include "cases/case.h"
#include "support/same_bits.h"

namespace rapt::test {

// Weights or scores of all heads and queries, or their mean over heads.
struct Wanted {
  Stage stage = Stage::weights;
  bool mean = false;
};

struct Result {
  Tensor out, lse;
  std::vector<Wanted> wanted{};
  std::vector<Tensor> captures{};  // one for each requested, in f32
};

Result call(const ConstTensorView& query, const ConstTensorView& key, const ConstTensorView& value,
            const AttentionOptions& options, const std::vector<Wanted>& wanted = {});

struct Range {
  std::int64_t begin = 0, end = 0;
};
struct Part {
  Range batch, kv_heads, queries;
  std::int64_t keys = 0;  // counted from the first key
};

Part whole_of(const cases::CaseSpec& spec);

// Runs the call for one part, with the part's position as an offset. Requires top-left or offset alignment.
Result call_part(const cases::Case& test, const Part& part, const std::vector<Wanted>& wanted = {});

// Runs the part with all outputs of the whole call, and compares them. A mean over heads requires all heads.
void expect_part_has_bits_of(const Result& whole, const cases::Case& test, const Part& part);

}  // namespace rapt::test
