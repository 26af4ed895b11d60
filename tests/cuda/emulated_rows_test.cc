// The forward kernel's own source, run on the CPU with the modelled tensor core, on the case list.

#include <string>
#include <vector>

#include "cases/compare.h"
#include "cases/list.h"
#include "gtest/gtest.h"
#include "support/cuda_call.h"
#include "support/emulated_rows.h"

namespace rapt {
namespace {

std::vector<cases::CaseSpec> specs(DType type) {
  std::vector<cases::CaseSpec> list = cases::all_cases();
  for (cases::CaseSpec& spec : list) {
    spec.query_type = spec.kv_type = type;
    spec.page_size = 0;
    spec.captures.clear();
  }
  return list;
}

class EmulatedRows : public testing::TestWithParam<DType> {};

TEST_P(EmulatedRows, AgreeWithTheReferenceOnTheCaseList) {
  int run = 0;
  for (const cases::CaseSpec& spec : specs(GetParam())) {
    const cases::Case test(spec);
    const test::CudaCall call(test);
    if (!test::rows_can_run(call.arguments())) continue;
    SCOPED_TRACE(describe(spec));
    ASSERT_NO_THROW(test::run_emulated_rows(call.arguments()));
    EXPECT_EQ(cases::mismatch(spec, call.answer(), cases::truth(test)), "");
    EXPECT_TRUE(call.is_untouched());
    ++run;
  }
  EXPECT_GT(run, 40);
}

INSTANTIATE_TEST_SUITE_P(In, EmulatedRows, testing::Values(DType::bf16, DType::f16),
                         [](const auto& test) { return std::string(name_of(test.param)); });

}  // namespace
}  // namespace rapt
