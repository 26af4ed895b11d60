// Runs the case list on the engines, and checks properties that hold for every case.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>

#include <gtest/gtest.h>

#include "cases/compare.h"
#include "cases/list.h"

namespace rapt {
namespace {

using cases::Answer;
using cases::Case;
using cases::CaseSpec;

template <class Predicate>
std::vector<CaseSpec> cases_where(const Predicate& predicate) {
  std::vector<CaseSpec> chosen = cases::all_cases();
  std::erase_if(chosen, [&](const CaseSpec& spec) { return !predicate(spec); });
  return chosen;
}

bool has_no_sinks(const CaseSpec& spec) { return !spec.sinks; }
bool has_batch_rows(const CaseSpec& spec) { return spec.packed.key_starts.empty() && spec.batch > 0; }
bool is_plain(const CaseSpec& spec) { return spec.page_size == 0 && spec.kv_type != DType::i8; }
bool knows_no_order(const CaseSpec& spec) {
  return !spec.causal && !spec.window.left && !spec.window.right && !spec.alibi && spec.key_lengths.empty() &&
         spec.packed.key_starts.empty() && spec.dropout.rate == 0.0 && is_plain(spec);
}

class EveryCase : public testing::TestWithParam<CaseSpec> {};
class EveryCaseWithGradients : public testing::TestWithParam<CaseSpec> {};
class EveryCaseWithoutSinks : public testing::TestWithParam<CaseSpec> {};
class EveryCaseWithBatchRows : public testing::TestWithParam<CaseSpec> {};
class EveryCaseWithoutOrder : public testing::TestWithParam<CaseSpec> {};
const auto name_of_case = [](const auto& instance) { return instance.param.name; };
INSTANTIATE_TEST_SUITE_P(Cases, EveryCase, testing::ValuesIn(cases::all_cases()), name_of_case);
INSTANTIATE_TEST_SUITE_P(Cases, EveryCaseWithGradients, testing::ValuesIn(cases_where(cases::has_backward)),
                         name_of_case);
INSTANTIATE_TEST_SUITE_P(Cases, EveryCaseWithoutSinks, testing::ValuesIn(cases_where(has_no_sinks)), name_of_case);
INSTANTIATE_TEST_SUITE_P(Cases, EveryCaseWithBatchRows, testing::ValuesIn(cases_where(has_batch_rows)), name_of_case);
INSTANTIATE_TEST_SUITE_P(Cases, EveryCaseWithoutOrder, testing::ValuesIn(cases_where(knows_no_order)), name_of_case);

bool same_bits(const Tensor& a, const Tensor& b) {
  return a.shape() == b.shape() && a.dtype() == b.dtype() &&
         (a.count() == 0 ||
          std::memcmp(a.view().data(), b.view().data(), static_cast<std::size_t>(a.count()) * size_of(a.dtype())) == 0);
}

void expect_same_bits(const Answer& a, const Answer& b) {
  EXPECT_TRUE(same_bits(a.out, b.out)) << "out";
  EXPECT_TRUE(same_bits(a.lse, b.lse)) << "lse";
  ASSERT_EQ(a.captures.size(), b.captures.size());
  for (std::size_t n = 0; n < a.captures.size(); ++n) {
    EXPECT_TRUE(same_bits(a.captures[n], b.captures[n])) << "capture " << n;
  }
}

TEST_P(EveryCase, IsNearTheTruthAndWritesNothingElse) {
  const Case test(GetParam());
  bool untouched = false;
  const Answer got = cases::run(test, &untouched);
  EXPECT_EQ(cases::mismatch(test.spec, got, cases::truth(test)), "") << describe(test.spec);
  EXPECT_TRUE(untouched) << "memory around `out` was written";
}

void expect_same_bits(const cases::Gradients& a, const cases::Gradients& b) {
  ASSERT_EQ(a.size(), b.size());
  for (std::size_t n = 0; n < a.size(); ++n) EXPECT_TRUE(same_bits(a[n].values, b[n].values)) << a[n].name;
}

TEST_P(EveryCaseWithGradients, HasThemNearTheTruthAndWritesNothingElse) {
  const Case test(GetParam());
  bool untouched = false;
  const cases::Gradients got = cases::run_backward(test, &untouched);
  EXPECT_EQ(cases::mismatch(cases::compare(test.spec, got, cases::true_gradients(test))), "") << describe(test.spec);
  EXPECT_TRUE(untouched) << "memory around a gradient was written";
}

TEST_P(EveryCaseWithGradients, HasTheirBitsInEveryLayout) {
  CaseSpec spec = GetParam();
  spec.layout = cases::MemoryLayout::bhld;
  const cases::Gradients wanted = cases::run_backward(Case(spec));
  for (int layout = 1; layout <= static_cast<int>(cases::MemoryLayout::shifted); ++layout) {
    SCOPED_TRACE(layout);
    spec.layout = static_cast<cases::MemoryLayout>(layout);
    expect_same_bits(cases::run_backward(Case(spec)), wanted);
  }
}

TEST_P(EveryCaseWithGradients, HasTheirBitsForAnyNumberOfThreads) {
  Case test(GetParam());
  test.options.threads = 1;
  const cases::Gradients wanted = cases::run_backward(test);
  for (const int threads : {2, 3, 7}) {
    SCOPED_TRACE(threads);
    test.options.threads = threads;
    expect_same_bits(cases::run_backward(test), wanted);
  }
}

// Tasks run one after the other, in any order, so a task must not wait for a chunk whose task has not started.
TEST_P(EveryCaseWithGradients, RunsThroughTheCallersParallelForBackwardToo) {
  Case test(GetParam());
  const cases::Gradients wanted = cases::run_backward(test);
  test.options.threads = 3;
  int calls = 0;
  test.options.parallel_for = [&](std::int64_t count, const Task& task) {
    ++calls;
    for (std::int64_t n = count; n > 0; --n) task(n - 1);
  };
  expect_same_bits(cases::run_backward(test), wanted);
  EXPECT_TRUE(calls > 0 || test.spec.query_type == DType::f64);
}

TEST_P(EveryCase, KeepsItsBitsInEveryLayout) {
  CaseSpec spec = GetParam();
  spec.layout = cases::MemoryLayout::bhld;
  const Answer wanted = cases::run(Case(spec));
  for (int layout = 1; layout <= static_cast<int>(cases::MemoryLayout::shifted); ++layout) {
    SCOPED_TRACE(layout);
    spec.layout = static_cast<cases::MemoryLayout>(layout);
    expect_same_bits(cases::run(Case(spec)), wanted);
  }
}

TEST_P(EveryCase, KeepsItsBitsForAnyNumberOfThreads) {
  Case test(GetParam());
  test.options.threads = 1;
  const Answer wanted = cases::run(test);
  for (const int threads : {2, 3, 7}) {
    SCOPED_TRACE(threads);
    test.options.threads = threads;
    expect_same_bits(cases::run(test), wanted);
  }
}

TEST_P(EveryCase, RunsThroughTheCallersParallelFor) {
  Case test(GetParam());
  const Answer wanted = cases::run(test);
  test.options.threads = 3;
  int calls = 0;
  test.options.parallel_for = [&](std::int64_t count, const Task& task) {
    ++calls;
    for (std::int64_t n = count; n > 0; --n) task(n - 1);  // any order will do
  };
  expect_same_bits(cases::run(test), wanted);
  EXPECT_GT(calls, 0);
}

// Weights of every head of every row, before dropout.
Tensor weights_of(CaseSpec spec) {
  spec.captures = {{Stage::weights, {}}};
  spec.query_type = spec.kv_type = DType::f64;
  return std::move(cases::run(Case(spec)).captures[0]);
}

TEST_P(EveryCaseWithoutSinks, HasRowsOfWeightsThatSumToOneOrZero) {
  const Tensor weights = weights_of(GetParam());
  const auto keys = static_cast<std::size_t>(weights.size(3));
  const std::span<const double> values = weights.values<double>();
  for (std::size_t row = 0; keys > 0 && row < values.size() / keys; ++row) {
    double sum = 0.0;
    for (std::size_t j = 0; j < keys; ++j) sum += values[row * keys + j];
    if (sum != 0.0) {
      ASSERT_NEAR(sum, 1.0, 1e-12) << "row " << row;
    }
  }
}

// With keys, values and masks in reverse order, the same sums are computed in another order.
TEST_P(EveryCaseWithoutOrder, DoesNotCareAboutTheOrderOfKeys) {
  CaseSpec spec = GetParam();
  spec.query_type = spec.kv_type = DType::f64;
  spec.captures.clear();
  spec.lse = true;
  Case test(spec);
  const Answer wanted = cases::run(test);

  const auto reversed = [](const ConstTensorView& view, int dim) {
    if (view.count() == 0) return view;  // there is no memory to point to
    const std::int64_t last = (view.size(dim) - 1) * view.stride(dim);
    Dims strides = view.strides();
    strides[dim] = -strides[dim];
    const auto* data = static_cast<const std::byte*>(view.data());
    return ConstTensorView(data + last * static_cast<std::int64_t>(size_of(view.dtype())), view.dtype(), view.shape(),
                           strides);
  };
  test.key = reversed(test.key, 2);
  test.value = reversed(test.value, 2);
  for (Mask& mask : test.options.masks) mask.view = reversed(mask.view, mask.view.rank() - 1);
  const Answer got = cases::run(test);
  EXPECT_LE(cases::relative_error(got.out, wanted.out), 1e-13);
  EXPECT_LE(cases::relative_error(got.lse, wanted.lse), 1e-13);
}

// Each row alone gives the bits it has in the batch.
TEST_P(EveryCaseWithBatchRows, GivesARowAloneTheBitsOfTheWhole) {
  const CaseSpec& spec = GetParam();
  const Case whole(spec);
  const Answer wanted = cases::run(whole);
  for (std::int64_t b = 0; b < spec.batch; ++b) {
    AttentionOptions options = whole.options;
    const auto row = [b](const ConstTensorView& view) {
      return view.rank() == 4 && view.size(0) > 1 ? view.slice(0, b, b + 1) : view;
    };
    for (Mask& mask : options.masks) mask.view = row(mask.view);
    if (!options.key_lengths.empty()) options.key_lengths = {options.key_lengths[static_cast<std::size_t>(b)]};
    if (options.alignment.values.size() > 1) {
      options.alignment.values = {options.alignment.values[static_cast<std::size_t>(b)]};
    }
    options.dropout.batch_start += b;
    const auto kv_row = [&](const ConstTensorView& view) {
      return spec.page_size == 0 && view.defined() ? view.slice(0, b, b + 1) : view;
    };
    options.key_scales = kv_row(options.key_scales), options.value_scales = kv_row(options.value_scales);
    const auto per_row = static_cast<std::size_t>(options.pages.per_row);
    options.pages.table = options.pages.table.subspan(static_cast<std::size_t>(b) * per_row, per_row);
    const Tensor out = attention(row(whole.query), kv_row(whole.key), kv_row(whole.value), options);
    EXPECT_TRUE(same_bits(out.to(DType::f64), Tensor::copy_of(wanted.out.view().slice(0, b, b + 1)))) << "row " << b;
  }
}

// In this case the largest weight of every head is dropped, so the remaining weights show the full error of two scores.
TEST(RandomCases, AreNearTheTruthWhereTheLargestWeightsAreDropped) {
  const Case test(cases::random_case(8943));
  EXPECT_EQ(cases::mismatch(test.spec, cases::run(test), cases::truth(test)), "") << describe(test.spec);
}

// How many of the random cases have a property, in per cent.
template <class Predicate>
double per_cent(const Predicate& predicate) {
  constexpr std::uint64_t kCases = 3000;
  double found = 0.0;
  for (std::uint64_t seed = 0; seed < kCases; ++seed) found += predicate(cases::random_case(seed)) ? 1.0 : 0.0;
  return 100.0 * found / kCases;
}

bool is_decoding(const CaseSpec& spec) {
  return spec.batch > 0 && spec.queries >= 1 && spec.queries <= 64 && spec.keys >= 256 && spec.keys >= 4 * spec.queries;
}

using Option = std::pair<const char*, std::function<bool(const CaseSpec&)>>;

// The options that every kind of call has, after those of one kind.
std::vector<Option> common_options_and(std::vector<Option> more) {
  more.insert(more.end(), {
                              {"causal", [](const CaseSpec& s) { return s.causal; }},
                              {"window", [](const CaseSpec& s) { return s.window.left.has_value(); }},
                              {"softcap", [](const CaseSpec& s) { return s.softcap > 0.0; }},
                              {"ALiBi", [](const CaseSpec& s) { return s.alibi; }},
                              {"sinks", [](const CaseSpec& s) { return s.sinks; }},
                              {"dropout", [](const CaseSpec& s) { return s.dropout.rate > 0.0; }},
                              {"key lengths", [](const CaseSpec& s) { return !s.key_lengths.empty(); }},
                              {"packed", [](const CaseSpec& s) { return !s.packed.key_starts.empty(); }},
                          });
  return more;
}

TEST(RandomCases, AreOftenInEachPairOfTypes) {
  for (const DType query : {DType::f32, DType::bf16, DType::f16}) {
    for (const DType kv : {DType::f32, DType::bf16, DType::f16, DType::i8}) {
      const auto in_these = [&](const CaseSpec& spec) { return spec.query_type == query && spec.kv_type == kv; };
      EXPECT_GE(per_cent(in_these), 3.0) << name_of(query) << " on " << name_of(kv);
      EXPECT_GE(per_cent([&](const CaseSpec& spec) { return in_these(spec) && is_decoding(spec); }), 0.7)
          << "decoding in " << name_of(query) << " on " << name_of(kv);
      EXPECT_GE(per_cent([&](const CaseSpec& spec) { return in_these(spec) && !spec.captures.empty(); }), 1.5)
          << "captures in " << name_of(query) << " on " << name_of(kv);
    }
  }
}

TEST(RandomCases, OftenAskForEachStage) {
  using Asked = std::function<bool(const Selection&)>;
  const std::pair<const char*, Asked> kinds[] = {
      {"all", [](const Selection& of) { return !of.mean_over_heads && of.heads.empty() && of.queries.empty(); }},
      {"a mean", [](const Selection& of) { return of.mean_over_heads; }},
      {"chosen heads", [](const Selection& of) { return !of.heads.empty(); }},
      {"chosen queries", [](const Selection& of) { return !of.queries.empty(); }},
  };
  for (int stage = 0; stage <= static_cast<int>(Stage::dropped_weights); ++stage) {
    for (const auto& [name, asked] : kinds) {
      const auto asks = [&, &asked = asked](const CaseSpec& spec) {
        return std::any_of(spec.captures.begin(), spec.captures.end(), [&](const auto& capture) {
          return static_cast<int>(capture.first) == stage && asked(capture.second);
        });
      };
      EXPECT_GE(per_cent(asks), 3.0) << "stage " << stage << ", " << name;
      EXPECT_GE(per_cent([&](const CaseSpec& spec) { return asks(spec) && is_decoding(spec); }), 0.5)
          << "decoding, stage " << stage << ", " << name;
    }
  }
}

TEST(RandomCases, AreOftenFewQueriesOnALongCacheWithEachOption) {
  EXPECT_GE(per_cent(is_decoding), 15.0);
  const std::vector<Option> options = common_options_and({
      {"one query", [](const CaseSpec& s) { return s.queries == 1; }},
      {"9 to 64 queries", [](const CaseSpec& s) { return s.queries > 8; }},
      {"2000 keys", [](const CaseSpec& s) { return s.keys >= 2000; }},
      {"groups", [](const CaseSpec& s) { return s.query_heads >= 4 * s.kv_heads; }},
      {"masks", [](const CaseSpec& s) { return !s.masks.empty(); }},
      {"pages", [](const CaseSpec& s) { return s.page_size > 0; }},
      {"i8", [](const CaseSpec& s) { return s.kv_type == DType::i8; }},
  });
  for (const auto& [name, has] : options) {
    EXPECT_GE(per_cent([&has = has](const CaseSpec& spec) { return is_decoding(spec) && has(spec); }), 1.5) << name;
  }
}

TEST(RandomCases, OftenHaveGradientsWithEachOption) {
  EXPECT_GE(per_cent(cases::has_backward), 60.0);
  const auto has_mask = [](const CaseSpec& s, Mask::Kind kind) {
    return std::any_of(s.masks.begin(), s.masks.end(), [&](const cases::MaskSpec& mask) { return mask.kind == kind; });
  };
  const auto asks = [](const CaseSpec& s, Stage stage) {
    return std::any_of(s.captures.begin(), s.captures.end(), [&](const auto& one) { return one.first == stage; });
  };
  const std::vector<Option> options = common_options_and({
      {"keep", [&](const CaseSpec& s) { return has_mask(s, Mask::Kind::keep); }},
      {"drop", [&](const CaseSpec& s) { return has_mask(s, Mask::Kind::drop); }},
      {"fill", [&](const CaseSpec& s) { return has_mask(s, Mask::Kind::fill); }},
      {"dmask", [&](const CaseSpec& s) { return has_mask(s, Mask::Kind::add); }},
      {"groups", [](const CaseSpec& s) { return s.query_heads > s.kv_heads; }},
      {"another Dv", [](const CaseSpec& s) { return s.value_size != s.head_size; }},
      {"bf16", [](const CaseSpec& s) { return s.query_type == DType::bf16; }},
      {"f16", [](const CaseSpec& s) { return s.query_type == DType::f16; }},
      {"dlse", [](const CaseSpec& s) { return s.lse; }},
      {"dweights", [&](const CaseSpec& s) { return asks(s, Stage::weights); }},
      {"dweights after dropout", [&](const CaseSpec& s) { return asks(s, Stage::dropped_weights); }},
      {"out and lse handed over",
       [](const CaseSpec& s) { return cases::handed_to_backward(s) == cases::Handed::out_and_lse; }},
  });
  for (const auto& [name, has] : options) {
    const auto both = [&has = has](const CaseSpec& spec) { return cases::has_backward(spec) && has(spec); };
    EXPECT_GE(per_cent(both), 5.0) << name;
  }
}

// Checks that the comparison detects wrong results.
TEST(Comparer, SeesWhatIsWrong) {
  const Tensor wanted = Tensor::from<double>({3}, {1.0, 2.0, -INFINITY});
  EXPECT_EQ(cases::relative_error(wanted, wanted), 0.0);
  EXPECT_NEAR(cases::relative_error(Tensor::from<double>({3}, {1.0, 2.1, -INFINITY}), wanted), 0.1 / std::sqrt(5.0),
              1e-12);
  EXPECT_EQ(cases::relative_error(Tensor::from<double>({3}, {1.0, 2.0, -1e30}), wanted), INFINITY);
  EXPECT_EQ(cases::relative_error(Tensor::from<double>({3}, {1.0, NAN, -INFINITY}), wanted), INFINITY);
  EXPECT_EQ(cases::relative_error(Tensor::from<double>({1}, {1e-300}), Tensor::from<double>({1}, {0.0})), INFINITY);
  const Case test(CaseSpec{.name = "Plain"});
  Answer answer = cases::run(test);
  answer.out.values<double>()[0] += 0.01;
  EXPECT_NE(cases::mismatch(test.spec, answer, cases::truth(test)), "");

  const cases::Gradients truth = cases::true_gradients(test);
  for (std::size_t n = 0; n < truth.size(); ++n) {
    cases::Gradients gradients = cases::run_backward(test);
    gradients[n].values.values<double>()[0] += 1e-3;
    EXPECT_NE(cases::mismatch(cases::compare(test.spec, gradients, truth)), "") << truth[n].name;
  }
}

}  // namespace
}  // namespace rapt
