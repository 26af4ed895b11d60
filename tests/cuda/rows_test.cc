// The forward kernel of Hopper, emulated: the case list against the reference, and same bits.

#include <cstdint>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "cases/compare.h"
#include "cases/list.h"
#include "emulated/rows_engine.h"
#include "rapt/error.h"
#include "support/sanitizers.h"

namespace rapt::test {
namespace {

using cases::Answer;
using cases::Case;
using cases::CaseSpec;

// The case list in a 16-bit type, without what is not the kernel's to compute.
std::vector<CaseSpec> specs_in(DType type) {
  std::vector<CaseSpec> list = cases::all_cases();
  std::erase_if(list, [](const CaseSpec& spec) { return spec.page_size > 0 || spec.head_size > 256; });
  for (CaseSpec& spec : list) {
    spec.query_type = spec.kv_type = type;
    spec.captures.clear();
  }
  return list;
}

bool is_taken(const Case& test) {
  try {
    cases::run(test);
  } catch (const Error& error) {
    if (std::string(error.what()).find("the rows kernel does not take") == std::string::npos) throw;
    return false;
  }
  return true;
}

struct Emulated : Case {
  explicit Emulated(const CaseSpec& from) : Case(from) { options.engine = emulated_rows(); }
};

class RowsKernel : public testing::TestWithParam<DType> {};
INSTANTIATE_TEST_SUITE_P(In, RowsKernel, testing::Values(DType::bf16, DType::f16),
                         [](const auto& test) { return std::string(name_of(test.param)); });

TEST_P(RowsKernel, IsNearTheTruthAndWritesNothingElse) {
  int taken = 0;
  for (const CaseSpec& spec : specs_in(GetParam())) {
    SCOPED_TRACE(describe(spec));
    const Emulated test(spec);
    if (!is_taken(test)) continue;
    ++taken;
    bool untouched = false;
    const Answer got = cases::run(test, &untouched);
    EXPECT_EQ(cases::mismatch(spec, got, cases::truth(test)), "");
    EXPECT_TRUE(untouched) << "memory around `out` was written";
  }
  EXPECT_GT(taken, 40);
}

}  // namespace
}  // namespace rapt::test
