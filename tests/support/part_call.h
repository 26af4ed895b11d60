// A case run in parts: some batch rows, kv heads or queries, against the keys there are by then. Each part must have
// the bits that it has inside the whole.
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
  std::vector<Tensor> captures{};  // one for each that was wanted, in f32
};

Result call(const ConstTensorView& query, const ConstTensorView& key, const ConstTensorView& value,
            const AttentionOptions& options, const std::vector<Wanted>& wanted = {});

struct Range {
  std::int64_t begin = 0, end = 0;
};
struct Part {
  Range batch, kv_heads, queries;
  std::int64_t keys = 0;  // from the first one on
};

Part whole_of(const cases::CaseSpec& spec);

// The same call for a part alone, told where it stands. It holds for an alignment at the top left or by offset.
Result call_part(const cases::Case& test, const Part& part, const std::vector<Wanted>& wanted = {});

// Runs the part, asking for all that the whole holds. A mean over heads needs all of them.
void expect_part_has_bits_of(const Result& whole, const cases::Case& test, const Part& part);

}  // namespace rapt::test
