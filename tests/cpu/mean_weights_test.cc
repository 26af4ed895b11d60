// The mean of the weights over heads has two code paths in the CPU engine: weights kept from the pass that computes the
// output, and weights recomputed by a second pass. Which one a call uses depends on its sizes and on its other outputs,
// so both must give the same bits. Exact comparisons, on every instruction set of this machine.
#include <cmath>

#include <gtest/gtest.h>

#include "cases/case.h"
#include "cases/compare.h"
#include "support/every_instruction_set.h"
#include "support/part_call.h"
#include "support/settings.h"

namespace rapt::test {
namespace {

using cases::CaseSpec;

class MeanWeights : public EveryInstructionSet {};
RAPT_ON_EVERY_INSTRUCTION_SET(MeanWeights);

// Calls that cover several chunks of keys, several tiles of queries, and combinations of options.
std::vector<CaseSpec> settings(std::int64_t batch, std::int64_t queries, std::int64_t keys) {
  return settings_of(
      {.name = "Plain", .batch = batch, .query_heads = 4, .queries = queries, .keys = keys, .seed = 900},
      {
          [](CaseSpec&) {},
          [](CaseSpec& s) { s.causal = true; },
          [](CaseSpec& s) { s.causal = true, s.window.left = 100, s.sinks = true, s.kv_heads = 4; },
          [](CaseSpec& s) {
            s.window = {30, 300}, s.alignment = Alignment::offset(40), s.spread = 4.0;
          },
          [](CaseSpec& s) { s.softcap = 3.0, s.alibi = true, s.spread = 3.0, s.sinks = true; },
          [](CaseSpec& s) {
            s.causal = true, s.masks = {{.kind = Mask::Kind::keep, .one_head = true}, {.kind = Mask::Kind::add}};
          },
          [](CaseSpec& s) {
            s.masks = {{.kind = Mask::Kind::drop, .plane_only = true, .chance = 0.98}, {.kind = Mask::Kind::fill}};
            s.kv_heads = 1;
          },
          [](CaseSpec& s) {
            s.masks = {{.kind = Mask::Kind::add, .special = -std::numeric_limits<double>::infinity()}};
            s.spread = 8.0, s.layout = cases::MemoryLayout::blhd;
          },
          [](CaseSpec& s) { s.causal = true, s.query_type = s.kv_type = DType::bf16, s.value_size = 9; },
          [](CaseSpec& s) { s.kv_type = DType::f16, s.layout = cases::MemoryLayout::gaps, s.kv_heads = 1; },
      });
}

// The outputs of a call, with or without an additional capture: scores of one row, which require the second pass.
struct Means {
  Tensor out, lse, mean;
  std::size_t bytes = 0;  // of its workspace
};

Means run(const cases::Case& test, const Selection& of, bool again, Stage stage = Stage::weights) {
  const CaseSpec& spec = test.spec;
  Means result{Tensor({spec.batch, spec.query_heads, spec.queries, spec.value_size}, spec.query_type),
               Tensor({spec.batch, spec.query_heads, spec.queries}), Tensor({spec.batch, spec.queries, spec.keys})};
  std::ranges::fill(result.mean.values<float>(), std::nanf(""));  // every number must be written
  Tensor scores({spec.batch, 1, 1, spec.keys});
  AttentionOutputs outputs{.out = result.out, .lse = result.lse, .captures = {{stage, result.mean, of}}};
  if (again) outputs.captures.push_back({Stage::raw, scores, {.heads = {0}, .queries = {0}}});
  attention(outputs, test.query, test.key, test.value, test.options);
  result.bytes = attention_workspace_bytes(outputs, test.query, test.key, test.value, test.options);
  return result;
}

void expect_same(const Means& got, const Means& wanted, const std::string& what) {
  EXPECT_TRUE(same_bits(got.out, wanted.out)) << "out: " << what;
  EXPECT_TRUE(same_bits(got.lse, wanted.lse)) << "lse: " << what;
  EXPECT_TRUE(same_bits(got.mean, wanted.mean)) << "mean: " << what;
}

const Selection kAllHeads{.mean_over_heads = true};

TEST_P(MeanWeights, KeptAndComputedAgainHaveTheSameBitsOnAnyNumberOfThreads) {
  for (const CaseSpec& spec : settings(2, 150, 600)) {
    cases::Case test(spec);
    test.options.threads = 1;
    const Means wanted = run(test, kAllHeads, true);
    for (const int threads : {1, 2, 7}) {
      test.options.threads = threads;
      const Means kept = run(test, kAllHeads, false);
      const Means again = run(test, kAllHeads, true);
      const std::string what = std::to_string(threads) + " threads: " + describe(spec);
      expect_same(kept, wanted, "kept, " + what);
      expect_same(again, wanted, "again, " + what);
      EXPECT_GT(kept.bytes, again.bytes) << "weights are not kept, " << what;
    }
  }
}

TEST_P(MeanWeights, AreTheMeanThatTheReferenceComputes) {
  for (CaseSpec& spec : settings(2, 150, 600)) {
    spec.captures = {{Stage::dropped_weights, kAllHeads}};
    const cases::Case test(spec);
    EXPECT_EQ(cases::mismatch(spec, cases::run(test), cases::truth(test)), "") << describe(spec);
  }
}

TEST_P(MeanWeights, KeptAndComputedAgainHaveTheSameBitsWithKeyLengths) {
  for (CaseSpec& spec : settings(5, 60, 520)) {
    spec.key_lengths = {520, 0, 256, 257, 3};
    const cases::Case test(spec);
    expect_same(run(test, kAllHeads, false), run(test, kAllHeads, true), describe(spec));
  }
}

TEST_P(MeanWeights, KeptAndComputedAgainHaveTheSameBitsInPackedSequences) {
  for (CaseSpec& spec : settings(1, 300, 900)) {
    spec.packed = {{0, 5, 5, 130, 300}, {0, 5, 300, 300, 900}};
    const cases::Case test(spec);
    expect_same(run(test, kAllHeads, false), run(test, kAllHeads, true), describe(spec));
  }
}

TEST_P(MeanWeights, KeptAndComputedAgainHaveTheSameBitsForChosenHeads) {
  for (const CaseSpec& spec : settings(1, 100, 300)) {
    const cases::Case test(spec);
    for (const std::vector<std::int64_t>& heads :
         {std::vector<std::int64_t>{2}, std::vector<std::int64_t>{3, 0, 3, 3, 1}}) {
      const Selection of{.mean_over_heads = true, .heads = heads};
      expect_same(run(test, of, false, Stage::dropped_weights), run(test, of, true), describe(spec));
    }
  }
}

// Weights are recomputed for parts with few queries, and kept for the whole call.
TEST_P(MeanWeights, HaveTheSameBitsForQueriesCutIntoSeveralCalls) {
  for (const CaseSpec& spec : settings(1, 300, 700)) {
    const cases::Case test(spec);
    const Result whole = call_part(test, whole_of(spec), {{.stage = Stage::weights, .mean = true}});
    for (const std::int64_t step : {7, 48, 129}) {
      for (std::int64_t first = 0; first < spec.queries; first += step) {
        if (step == 7 && first % 5 != 0) continue;  // a sample of these parts
        Part part = whole_of(spec);
        part.queries = {first, std::min(first + step, spec.queries)};
        expect_part_has_bits_of(whole, test, part);
      }
    }
  }
}

// A score that is NaN or +inf makes its own row NaN, at masked keys too, whichever way the weights were computed.
TEST_P(MeanWeights, OfARowThatIsNotANumberAreNaNAtEveryKey) {
  CaseSpec spec = settings(1, 100, 600)[1];
  const cases::Case test(spec);
  Tensor query = Tensor::copy_of(test.query);
  query.view().at<float>(0, 1, 70, 3) = std::numeric_limits<float>::infinity();
  for (const bool again : {false, true}) {
    Tensor out({1, 4, 100, 20}), mean({1, 100, 600}), scores({1, 1, 1, 600});
    AttentionOutputs outputs{.out = out, .captures = {{Stage::weights, mean, kAllHeads}}};
    if (again) outputs.captures.push_back({Stage::raw, scores, {.heads = {0}, .queries = {0}}});
    attention(outputs, query, test.key, test.value, test.options);
    for (std::int64_t i = 0; i < 100; ++i) {
      for (std::int64_t j = 0; j < 600; ++j) {
        ASSERT_EQ(std::isnan(mean.view().at<float>(0, i, j)), i == 70) << i << " " << j << (again ? " again" : "");
      }
    }
  }
}

// If there are too many keys for a worker's buffer, weights are recomputed; with few keys they are kept. For causal
// rows that see the same keys, both must give the same bits.
TEST_P(MeanWeights, HaveTheSameBitsHoweverManyKeysThereAreBehind) {
  CaseSpec spec{.name = "ManyKeys", .batch = 1};
  spec.query_heads = spec.kv_heads = 1, spec.queries = 60, spec.keys = 140000, spec.head_size = spec.value_size = 4;
  spec.causal = true, spec.alignment = Alignment::offset(300);
  const cases::Case test(spec);
  const Result whole = call_part(test, whole_of(spec), {{.stage = Stage::weights, .mean = true}});
  Part part = whole_of(spec);
  part.keys = 360;
  expect_part_has_bits_of(whole, test, part);
}

// The memory of a worker is bounded. If weights are recomputed, a call needs little more memory than without them.
TEST_P(MeanWeights, TakeABoundedWorkspace) {
  constexpr std::size_t kMiB = std::size_t{1} << 20;
  for (const std::int64_t keys : {256, 1000, 4096, 9000, 20000, 140000}) {
    Tensor query({1, 2, 200, 64}), key({1, 2, keys, 64}), out({1, 2, 200, 64}), mean({1, 200, keys});
    for (const int threads : {1, 2, 16}) {
      const AttentionOptions options{.threads = threads};
      const std::size_t plain = attention_workspace_bytes({.out = out}, query, key, key, options);
      const std::size_t bytes = attention_workspace_bytes({.out = out, .captures = {{Stage::weights, mean, kAllHeads}}},
                                                          query, key, key, options);
      const auto workers = static_cast<std::size_t>(threads);
      EXPECT_LE(bytes, std::max(workers * 4 * kMiB, plain) + kMiB / 8) << keys << " keys, " << threads << " threads";
    }
  }
}

}  // namespace
}  // namespace rapt::test
