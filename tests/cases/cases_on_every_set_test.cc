// Runs the case list and random cases on every instruction set of this machine. The slow reference engine computes the
// expected result once per case; every set is compared with it.
#include <cstdlib>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "cases/compare.h"
#include "cases/list.h"
#include "rapt/cpu.h"
#include "support/every_instruction_set.h"
#include "support/sanitizers.h"

namespace rapt::test {
namespace {

using cases::Answer;
using cases::Case;
using cases::CaseSpec;

void expect_near_the_truth_on_every_set(const CaseSpec& spec) {
  const Case test(spec);
  const Answer truth = cases::truth(test);
  const bool backward = cases::has_backward(spec);
  const cases::Gradients true_gradients = backward ? cases::true_gradients(test) : cases::Gradients{};
  const KeepInstructionSet keep;
  for (const std::string& set : instruction_sets_here()) {
    SCOPED_TRACE(set + ": " + describe(spec));
    use_instruction_set(set);
    bool untouched = false;
    EXPECT_EQ(cases::mismatch(test.spec, cases::run(test, &untouched), truth), "");
    EXPECT_TRUE(untouched) << "memory around `out` was written";
    if (!backward) continue;
    const cases::Gradients gradients = cases::run_backward(test, &untouched);
    EXPECT_EQ(cases::mismatch(cases::compare(test.spec, gradients, true_gradients)), "");
    EXPECT_TRUE(untouched) << "memory around a gradient was written";
  }
}

// Each test is divided into parts, so that several processes can share it.
constexpr int kParts = 8;
class CasesOnEverySet : public testing::TestWithParam<int> {
 protected:
  static void expect_near_the_truth(const std::vector<CaseSpec>& specs, std::size_t step = 1) {
    const auto part = static_cast<std::size_t>(GetParam());
    for (std::size_t n = part * step; n < specs.size(); n += kParts * step)
      expect_near_the_truth_on_every_set(specs[n]);
  }
};
INSTANTIATE_TEST_SUITE_P(Part, CasesOnEverySet, testing::Range(0, kParts));

TEST_P(CasesOnEverySet, AreNearTheTruthInTheList) { expect_near_the_truth(cases::all_cases()); }

TEST_P(CasesOnEverySet, AreNearTheTruthInTheListInEveryType) {
  // There are nine pairs of types per case, so every fourth entry still covers each case and, over the list, each pair.
  expect_near_the_truth(cases::all_cases_in_every_type(), kAddressSanitizer || kThreadSanitizer ? 4 : 1);
}

// RAPT_RANDOM_CASES and RAPT_RANDOM_SEED set the number of random cases and the first seed.
std::uint64_t from_environment(const char* name, std::uint64_t otherwise) {
  const char* text = std::getenv(name);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

// Builds without NDEBUG, sanitized ones among them, are many times slower, and are not meant to find wrong numbers.
#if defined(NDEBUG)
constexpr std::uint64_t kRandomCases = 600;
#else
constexpr std::uint64_t kRandomCases = 120;
#endif

TEST_P(CasesOnEverySet, AreNearTheTruthInRandomCases) {
  const std::uint64_t count = from_environment("RAPT_RANDOM_CASES", kRandomCases);
  const std::uint64_t first = from_environment("RAPT_RANDOM_SEED", 0);
  RecordProperty("first_seed", std::to_string(first));
  std::vector<CaseSpec> specs;
  for (std::uint64_t seed = first; seed < first + count; ++seed) specs.push_back(cases::random_case(seed));
  expect_near_the_truth(specs);
}

}  // namespace
}  // namespace rapt::test
