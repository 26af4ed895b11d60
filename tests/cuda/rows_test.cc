// The forward kernel of Hopper, emulated: the case list against the reference, and the properties that hold for every
// case.

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "cases/compare.h"
#include "cases/hidden.h"
#include "cases/list.h"
#include "emulated/rows_engine.h"
#include "rapt/error.h"
#include "support/part_call.h"
#include "support/same_bits.h"
#include "support/sanitizers.h"

namespace rapt::test {
namespace {

using cases::Answer;
using cases::Case;
using cases::CaseSpec;

// Multiply-adds of a case.
std::int64_t work(const CaseSpec& spec) {
  return spec.batch * spec.query_heads * spec.queries * spec.keys * (spec.head_size + spec.value_size);
}

// A case in a 16-bit type, without captures, which the kernel does not write.
CaseSpec in_type(CaseSpec spec, DType type) {
  spec.query_type = spec.kv_type = type;
  spec.captures.clear();
  return spec;
}

// Whether the kernel may support a case: it supports neither pages nor i8, and no head sizes above 256.
bool may_be_taken(const CaseSpec& spec) {
  return spec.page_size == 0 && spec.kv_type != DType::i8 && spec.head_size <= 256 && spec.value_size <= 256;
}

struct Emulated : Case {
  explicit Emulated(const CaseSpec& from) : Case(from) { options.engine = emulated_rows(); }
};

// The answer, or nothing if the kernel does not support the call.
std::optional<Answer> run_if_taken(const Case& test, bool* untouched = nullptr) {
  try {
    return cases::run(test, untouched);
  } catch (const Error& error) {
    if (std::string(error.what()).find("the rows kernel does not take") == std::string::npos) throw;
    return std::nullopt;
  }
}

// Returns false if the kernel does not support the call.
bool expect_near_the_truth(const CaseSpec& spec) {
  SCOPED_TRACE(describe(spec));
  const Emulated test(spec);
  bool untouched = false;
  const std::optional<Answer> got = run_if_taken(test, &untouched);
  if (!got) return false;
  EXPECT_EQ(cases::mismatch(spec, *got, cases::truth(test)), "");
  EXPECT_TRUE(untouched) << "memory around `out` was written";
  return true;
}

class RowsKernel : public testing::TestWithParam<DType> {
 protected:
  CaseSpec typed(const CaseSpec& spec) const { return in_type(spec, GetParam()); }
};
INSTANTIATE_TEST_SUITE_P(In, RowsKernel, testing::Values(DType::bf16, DType::f16),
                         [](const auto& test) { return std::string(name_of(test.param)); });

TEST_P(RowsKernel, IsNearTheTruthAndWritesNothingElse) {
  int taken = 0;
  for (const CaseSpec& spec : cases::all_cases()) {
    if (may_be_taken(spec) && expect_near_the_truth(typed(spec))) ++taken;
  }
  EXPECT_GT(taken, 40);
}

TEST_P(RowsKernel, IsNearTheTruthOnRandomCases) {
  const int wanted = kSlow ? 10 : 60;
  int taken = 0;
  for (std::uint64_t seed = 1; taken < wanted && seed < 2000 && !HasFailure(); ++seed) {
    const CaseSpec spec = cases::random_case(seed);
    if (may_be_taken(spec) && work(spec) <= 300'000 && expect_near_the_truth(typed(spec))) ++taken;
  }
  EXPECT_EQ(taken, wanted);
}

// Rows with about one chunk of keys, and with several. The totals of chunks are merged in shared memory or, for large
// heads, in global memory.
TEST_P(RowsKernel, MergesChunks) {
  for (const std::int64_t keys : {2047, 2049, 4100}) {
    for (const std::int64_t size : {64, 128, 200}) {
      if (kSlow && (size != 200 || keys != 4100)) continue;
      CaseSpec spec;
      spec.name = "Chunks";
      spec.batch = 1, spec.query_heads = 2, spec.kv_heads = 1, spec.queries = 3, spec.keys = keys;
      spec.head_size = spec.value_size = size;
      spec.causal = true, spec.alignment = Alignment::bottom_right();
      EXPECT_TRUE(expect_near_the_truth(typed(spec)));
    }
  }
}

// Scores so large that p would exceed its limit (kLazyLimit) if the maximum did not move from step to step.
TEST_P(RowsKernel, MovesTheMaximum) {
  for (const std::int64_t size : {64, 256}) {
    CaseSpec spec;
    spec.name = "LargeScoresOfManyKeys";
    spec.batch = 1, spec.queries = 40, spec.keys = 700, spec.spread = 5.0;
    spec.head_size = spec.value_size = size;
    EXPECT_TRUE(expect_near_the_truth(typed(spec)));
    if (kSlow) return;
  }
}

// Cases that visit several tiles and steps.
std::vector<CaseSpec> long_cases() {
  const auto spec = [](const char* name, std::int64_t queries, std::int64_t keys, std::int64_t size) {
    CaseSpec s;
    s.name = name, s.batch = 2, s.query_heads = 4, s.kv_heads = 2;
    s.queries = queries, s.keys = keys, s.head_size = s.value_size = size;
    return s;
  };
  CaseSpec causal = spec("Causal", 200, 200, 64), window = spec("Window", 150, 300, 80),
           grouped = spec("Grouped", 3, 300, 40);
  causal.causal = true;
  window.window.left = 70, window.causal = true, window.alignment = Alignment::offset(150);
  grouped.causal = true, grouped.alignment = Alignment::offset(297);
  return {causal, window, grouped};
}

void expect_same_bits(const Answer& a, const Answer& b) {
  EXPECT_TRUE(same_bits(a.out, b.out)) << "out";
  EXPECT_TRUE(same_bits(a.lse, b.lse)) << "lse";
}

TEST_P(RowsKernel, KeepsItsBitsInEveryLayout) {
  for (const CaseSpec& spec : long_cases()) {
    SCOPED_TRACE(spec.name);
    const Answer plain = cases::run(Emulated(typed(spec)));
    for (const auto layout :
         {cases::MemoryLayout::gaps, cases::MemoryLayout::backwards, cases::MemoryLayout::shifted}) {
      CaseSpec other = typed(spec);
      other.layout = layout;
      expect_same_bits(cases::run(Emulated(other)), plain);
    }
    if (kSlow) return;
  }
}

TEST_P(RowsKernel, KeepsItsBitsWhicheverWarpRunsFirstAndOnAnyNumberOfMultiprocessors) {
  const auto order = emulated_order;
  const auto multiprocessors = emulated_multiprocessors;
  for (const CaseSpec& spec : long_cases()) {
    SCOPED_TRACE(spec.name);
    const Emulated test(typed(spec));
    const Answer first = cases::run(test);
    for (const int n : {1, 3, 7}) {
      emulated_multiprocessors = n, emulated_order += 100;
      expect_same_bits(cases::run(test), first);
    }
    if (kSlow) break;
  }
  emulated_order = order, emulated_multiprocessors = multiprocessors;
}

TEST_P(RowsKernel, PartsHaveTheBitsOfTheWhole) {
  for (const CaseSpec& spec : long_cases()) {
    if (spec.alignment.kind == Alignment::Kind::bottom_right) continue;
    SCOPED_TRACE(spec.name);
    const Emulated test(typed(spec));
    const Part all = whole_of(test.spec);
    const Result whole = call_part(test, all);
    Part one_batch_row = all, one_head = all, one_query = all, some_queries = all;
    one_batch_row.batch = {1, 2};
    one_head.kv_heads = {1, 2};
    one_query.queries = {spec.queries - 1, spec.queries};
    some_queries.queries = {spec.queries / 3, spec.queries - 1};
    for (const Part& part : {one_batch_row, one_head, one_query, some_queries})
      expect_part_has_bits_of(whole, test, part);
    if (kSlow) return;
  }
}

TEST_P(RowsKernel, HiddenKeysHaveNoInfluence) {
  const int wanted = kSlow ? 3 : 20;
  int found = 0;
  for (std::uint64_t seed = 1; found < wanted && seed < 2000 && !HasFailure(); ++seed) {
    const CaseSpec spec = typed(cases::random_case(seed));
    if (!may_be_taken(spec) || work(spec) > 100'000 || work(spec) == 0) continue;
    Emulated test(spec);
    if (!run_if_taken(test)) continue;
    const cases::SeenKeys seen(test);
    const std::vector<cases::Spoilt> spoilt = cases::draw_spoilt(test, seen);
    if (spoilt.empty()) continue;
    ++found;
    EXPECT_EQ(cases::leaks(test, seen, spoilt), "") << describe(spec);
  }
  EXPECT_EQ(found, wanted);
}

}  // namespace
}  // namespace rapt::test
