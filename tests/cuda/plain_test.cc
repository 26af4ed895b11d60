// The plain CUDA kernels, emulated: the case list against the reference, and the properties that hold for every case.
#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "cases/compare.h"
#include "cases/hidden.h"
#include "cases/list.h"
#include "support/cuda/emulated_cuda.h"
#include "support/same_bits.h"
#include "support/sanitizers.h"

namespace rapt::test {
namespace {

using cases::Answer;
using cases::Case;
using cases::CaseSpec;

std::vector<CaseSpec> cases_in_f32() {
  std::vector<CaseSpec> list = cases::all_cases();
  std::erase_if(list, [](const CaseSpec& spec) { return spec.query_type == DType::f64; });
  return list;
}

// Multiply-adds of a case.
std::int64_t work(const CaseSpec& spec) {
  return spec.batch * spec.query_heads * spec.queries * spec.keys * (spec.head_size + spec.value_size);
}

struct Emulated : Case {
  explicit Emulated(const CaseSpec& from) : Case(from) { options.engine = emulated_cuda(); }
};

void expect_near_the_truth(const CaseSpec& spec) {
  SCOPED_TRACE(describe(spec));
  const Emulated test(spec);
  bool untouched = false;
  const Answer got = cases::run(test, &untouched);
  EXPECT_EQ(cases::mismatch(spec, got, cases::truth(test)), "");
  EXPECT_TRUE(untouched) << "memory around `out` was written";
  if (!cases::has_backward(spec)) return;
  const cases::Gradients gradients = cases::run_backward(test, &untouched);
  EXPECT_EQ(cases::mismatch(cases::compare(spec, gradients, cases::true_gradients(test))), "");
  EXPECT_TRUE(untouched) << "memory around a gradient was written";
}

void expect_same_bits(const CaseSpec& a, const CaseSpec& b) {
  const Emulated of_a(a), of_b(b);
  const Answer x = cases::run(of_a), y = cases::run(of_b);
  EXPECT_TRUE(same_bits(x.out, y.out)) << "out";
  EXPECT_TRUE(same_bits(x.lse, y.lse)) << "lse";
  for (std::size_t n = 0; n < x.captures.size(); ++n) {
    EXPECT_TRUE(same_bits(x.captures[n], y.captures[n])) << "capture " << n;
  }
  if (!cases::has_backward(a)) return;
  const cases::Gradients s = cases::run_backward(of_a), t = cases::run_backward(of_b);
  for (std::size_t n = 0; n < s.size(); ++n) EXPECT_TRUE(same_bits(s[n].values, t[n].values)) << s[n].name;
}

std::vector<CaseSpec> cases_with_batch_rows() {
  std::vector<CaseSpec> list = cases_in_f32();
  std::erase_if(list, [](const CaseSpec& spec) { return !spec.packed.key_starts.empty(); });
  return list;
}

class PlainKernels : public testing::TestWithParam<CaseSpec> {};
class PlainKernelsOnBatchRows : public testing::TestWithParam<CaseSpec> {};
const auto name_of_case = [](const auto& instance) { return instance.param.name; };
INSTANTIATE_TEST_SUITE_P(Cases, PlainKernels, testing::ValuesIn(cases_in_f32()), name_of_case);
INSTANTIATE_TEST_SUITE_P(Cases, PlainKernelsOnBatchRows, testing::ValuesIn(cases_with_batch_rows()), name_of_case);

TEST_P(PlainKernels, AreNearTheTruthAndWriteNothingElse) { expect_near_the_truth(GetParam()); }

TEST_P(PlainKernels, KeepTheirBitsInEveryLayout) {
  CaseSpec spec = GetParam();
  spec.layout = cases::MemoryLayout::bhld;
  if (kSlow && work(spec) > 1'000'000) GTEST_SKIP() << "too long under a sanitizer";
  for (const auto layout : {cases::MemoryLayout::gaps, cases::MemoryLayout::backwards, cases::MemoryLayout::shifted}) {
    SCOPED_TRACE(static_cast<int>(layout));
    CaseSpec other = spec;
    other.layout = layout;
    expect_same_bits(other, spec);
  }
}

// The offset of batch row b, as Alignment defines it.
std::int64_t offset_of(const CaseSpec& spec, std::size_t b) {
  const std::vector<std::int64_t>& values = spec.alignment.values;
  if (spec.alignment.kind == Alignment::Kind::offset) return values.size() > 1 ? values[b] : values[0];
  if (spec.alignment.kind != Alignment::Kind::bottom_right) return 0;
  return (spec.key_lengths.empty() ? spec.keys : spec.key_lengths[b]) - spec.queries;
}

// Query 1 and queries 3 to 5 of each batch row, computed in separate calls, have the same bits as in the whole call.
TEST_P(PlainKernelsOnBatchRows, GiveSomeQueriesOfARowTheBitsOfTheWhole) {
  const CaseSpec& spec = GetParam();
  const Emulated whole(spec);
  const Answer wanted = cases::run(whole);
  for (std::int64_t b = 0; b < spec.batch; ++b) {
    for (const auto& [first, last] : {std::pair<std::int64_t, std::int64_t>{1, 2}, {3, 6}}) {
      if (last > spec.queries) continue;
      AttentionOptions options = whole.options;
      const auto row = [b](const ConstTensorView& view) {
        return view.rank() == 4 && view.size(0) > 1 ? view.slice(0, b, b + 1) : view;
      };
      const auto cut = [&, first = first, last = last](const ConstTensorView& view, int dim) {
        return view.size(dim) > 1 ? view.slice(dim, first, last) : view;
      };
      for (Mask& mask : options.masks) mask.view = cut(row(mask.view), mask.view.rank() - 2);
      if (!options.key_lengths.empty()) options.key_lengths = {options.key_lengths[static_cast<std::size_t>(b)]};
      options.alignment = Alignment::offset(offset_of(spec, static_cast<std::size_t>(b)) + first);
      options.dropout.batch_start += b, options.dropout.query_start += first;
      const auto kv_row = [&](const ConstTensorView& view) {
        return spec.page_size == 0 && view.defined() ? view.slice(0, b, b + 1) : view;
      };
      options.key_scales = kv_row(options.key_scales), options.value_scales = kv_row(options.value_scales);
      const auto per_row = static_cast<std::size_t>(options.pages.per_row);
      options.pages.table = options.pages.table.subspan(static_cast<std::size_t>(b) * per_row, per_row);
      const Tensor out = attention(cut(row(whole.query), 2), kv_row(whole.key), kv_row(whole.value), options);
      const ConstTensorView of_whole = wanted.out.view().slice(0, b, b + 1).slice(2, first, last);
      EXPECT_TRUE(same_bits(out.to(DType::f64), of_whole)) << "batch row " << b << ", queries from " << first;
    }
  }
}

TEST(PlainKernelsInEveryType, AreNearTheTruth) {
  for (const CaseSpec& spec : cases::all_cases_in_every_type()) {
    if (spec.query_type == DType::f32 && spec.kv_type == DType::f32) continue;  // in PlainKernels
    if (work(spec) <= (kSlow ? 20'000 : 300'000)) expect_near_the_truth(spec);
    if (testing::Test::HasFailure()) return;
  }
}

TEST(PlainKernelsOnRandomCases, AreNearTheTruth) {
  const int wanted = kSlow ? 100 : 1000;
  int found = 0;
  for (std::uint64_t seed = 1; found < wanted && !testing::Test::HasFailure(); ++seed) {
    const CaseSpec spec = cases::random_case(seed);
    if (work(spec) > 300'000) continue;
    ++found;
    expect_near_the_truth(spec);
  }
}

TEST(PlainKernelsOnRandomCases, LetHiddenKeysHaveNoInfluence) {
  const int wanted = kSlow ? 30 : 300;
  int found = 0;
  for (std::uint64_t seed = 1; found < wanted && !testing::Test::HasFailure(); ++seed) {
    CaseSpec spec = cases::random_case(seed);
    if (work(spec) > 200'000 || work(spec) == 0) continue;
    spec.captures.emplace_back(Stage::masked, Selection());
    spec.captures.emplace_back(Stage::weights, Selection());
    Emulated test(spec);
    const cases::SeenKeys seen(test);
    const std::vector<cases::Spoilt> spoilt = cases::draw_spoilt(test, seen);
    if (spoilt.empty()) continue;
    ++found;
    EXPECT_EQ(cases::leaks(test, seen, spoilt), "") << describe(spec);
  }
}

}  // namespace
}  // namespace rapt::test
