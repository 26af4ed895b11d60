// Decoding and chunked prefill: few queries against a long cache. Whatever the storage types, the group of heads, the
// options and the number of threads, a row has the same bits as in one causal pass.
#include <algorithm>
#include <array>
#include <functional>

#include <gtest/gtest.h>

#include "cases/compare.h"
#include "cases/list.h"
#include "support/every_instruction_set.h"
#include "support/part_call.h"

namespace rapt::test {
namespace {

using cases::CaseSpec;

class Decoding : public EveryInstructionSet {};
RAPT_ON_EVERY_INSTRUCTION_SET(Decoding);

struct Types {
  DType query, kv;
};
// The cache may have a narrower type than the query.
constexpr Types kTypes[] = {{DType::f32, DType::f32},
                            {DType::bf16, DType::bf16},
                            {DType::f16, DType::f16},
                            {DType::f32, DType::bf16},
                            {DType::f32, DType::f16}};
constexpr std::int64_t kGroups[] = {1, 4, 8};

// Every option with every pair of types, in groups of 1, 4 and 8 in turn. Where all of them would take minutes (without
// vectors, or under a sanitizer), only every fifth case runs: among them are every option, every pair of types and
// every size of group. From 257 keys (two chunks) on, one query of 16 heads is enough work for more than one thread.
std::vector<CaseSpec> decodings(std::int64_t length, const std::string& instruction_set) {
  const std::function<void(CaseSpec&)> changes[] = {
      [](CaseSpec&) {},
      [](CaseSpec& s) { s.window.left = 300; },
      [](CaseSpec& s) { s.window = {.left = 50, .first = 4}; },
      [](CaseSpec& s) { s.softcap = 3.0, s.spread = 3.0; },
      [](CaseSpec& s) { s.alibi = true; },
      [](CaseSpec& s) { s.sinks = true; },
      [](CaseSpec& s) { s.dropout = {.rate = 0.3, .seed = 77, .head_start = 2}; },
      [](CaseSpec& s) {
        s.window.left = 511, s.softcap = 20.0, s.alibi = true, s.sinks = true, s.dropout = {.rate = 0.2, .seed = 5};
      },
  };
  std::vector<CaseSpec> list;
  for (const auto& [query_type, kv_type] : kTypes) {
    for (const auto& change : changes) {
      CaseSpec spec{.name = "Decoding" + std::to_string(list.size()), .batch = 1};
      spec.query_heads = 16, spec.kv_heads = 16 / kGroups[list.size() % 3];
      spec.queries = spec.keys = length, spec.head_size = spec.value_size = 32;
      spec.query_type = query_type, spec.kv_type = kv_type;
      spec.causal = true, spec.alignment = Alignment::top_left(), spec.seed = 300 + list.size();
      change(spec);
      list.push_back(spec);
    }
  }
  if (instruction_set != "scalar" && !kAddressSanitizer && !kThreadSanitizer) return list;
  std::vector<CaseSpec> some;
  for (std::size_t n = 0; n < list.size(); n += 5) some.push_back(list[n]);
  return some;
}

// Queries first … last − 1 as a separate call, with a cache that holds the keys up to the last of them.
Part step_of(const CaseSpec& spec, std::int64_t first, std::int64_t last) {
  Part part = whole_of(spec);
  part.queries = {first, last};
  part.keys = last;
  return part;
}

Result whole_pass(cases::Case& test, const std::vector<Wanted>& wanted = {}) {
  test.options.threads = 1;
  return call_part(test, whole_of(test.spec), wanted);
}

// Without optimisation each call takes twenty times as long, so fewer are made.
#if defined(NDEBUG)
constexpr std::int64_t kEvery = 1;
#else
constexpr std::int64_t kEvery = 5;
#endif

TEST_P(Decoding, TokenByTokenHasTheBitsOfOneCausalPass) {
  for (const CaseSpec& spec : decodings(700, GetParam())) {
    cases::Case test(spec);
    const Result whole = whole_pass(test);
    // Every token around the edge of a chunk of keys, and a sample of the others that covers every position in a
    // vector.
    const auto at_an_edge = [](std::int64_t i) { return i % 256 < 3 || i % 256 > 253; };
    for (std::int64_t i = 0; i < spec.queries; ++i) {
      if (!at_an_edge(i) && i % 13 != 0 && i != 699) continue;
      for (const int threads : {1, 2, 7}) {
        test.options.threads = threads;
        expect_part_has_bits_of(whole, test, step_of(spec, i, i + 1));
      }
    }
    if (HasFailure()) return;  // the output of one case is enough
  }
}

TEST_P(Decoding, PrefillInChunksHasTheBitsOfOneCausalPass) {
  for (const CaseSpec& spec : decodings(700, GetParam())) {
    cases::Case test(spec);
    const Result whole = whole_pass(test);
    for (const std::int64_t step : {1, 3, 17, 64}) {
      std::int64_t calls = 0;
      for (std::int64_t first = 0; first < spec.queries; first += step, ++calls) {
        if (calls % (step < 17 ? 23 : kEvery) != 0) continue;
        test.options.threads = std::array{1, 2, 7}[static_cast<std::size_t>(calls % 3)];
        expect_part_has_bits_of(whole, test, step_of(spec, first, std::min(first + step, spec.queries)));
      }
    }
    if (HasFailure()) return;
  }
}

TEST_P(Decoding, WeightsAndScoresOfATokenAreThoseOfOneCausalPass) {
  const std::vector<Wanted> wanted = {{Stage::raw},     {Stage::capped},          {Stage::masked},
                                      {Stage::weights}, {Stage::dropped_weights}, {Stage::dropped_weights, true}};
  for (const CaseSpec& spec : decodings(270, GetParam())) {
    cases::Case test(spec);
    const Result whole = whole_pass(test, wanted);
    for (const auto& [first, last] :
         {Range{0, 1}, {31, 32}, {100, 117}, {254, 255}, {255, 256}, {256, 257}, {206, 270}}) {
      for (const int threads : {1, 7}) {
        test.options.threads = threads;
        expect_part_has_bits_of(whole, test, step_of(spec, first, last));
      }
    }
    if (HasFailure()) return;
  }
}

// ---------------------------------------------------------------- more threads than rows

// Few queries on 5000 keys. Most of these cases have fewer blocks of rows than threads, and the first has only one
// block.
std::vector<CaseSpec> long_caches() {
  const std::function<void(CaseSpec&)> changes[] = {
      [](CaseSpec& s) { s.query_heads = 1; },
      [](CaseSpec& s) { s.query_heads = 8; },
      [](CaseSpec& s) { s.query_heads = 4, s.queries = 5, s.causal = true; },
      [](CaseSpec& s) { s.query_heads = 8, s.queries = 64, s.causal = true, s.head_size = s.value_size = 16; },
      [](CaseSpec& s) { s.query_heads = 8, s.kv_heads = 2, s.queries = 3, s.head_size = 40, s.value_size = 24; },
      [](CaseSpec& s) { s.query_heads = 8, s.causal = true, s.window.left = 3000, s.softcap = 5.0, s.alibi = true; },
      [](CaseSpec& s) { s.query_heads = 8, s.causal = true, s.window = {.left = 1700, .first = 600}; },
      [](CaseSpec& s) { s.query_heads = 3, s.sinks = true, s.dropout = {.rate = 0.25, .seed = 8}; },
      [](CaseSpec& s) {
        s.query_heads = 4, s.batch = 4, s.key_lengths = {5000, 1, 0, 2600};
      },
      [](CaseSpec& s) {
        s.query_heads = 4, s.queries = 2,
        s.masks = {{.kind = Mask::Kind::drop, .chance = 0.9}, {.kind = Mask::Kind::add}};
      },
      [](CaseSpec& s) { s.query_heads = 6, s.spread = 6.0, s.layout = cases::MemoryLayout::blhd; },
  };
  std::vector<CaseSpec> list;
  for (const auto& change : changes) {
    for (const auto& [query_type, kv_type] : {kTypes[0], kTypes[list.size() / 2 % 4 + 1]}) {
      CaseSpec spec{.name = "LongCache" + std::to_string(list.size()), .batch = 1};
      spec.kv_heads = 1, spec.queries = 1, spec.keys = 5000, spec.head_size = spec.value_size = 64;
      spec.query_type = query_type, spec.kv_type = kv_type;
      spec.alignment = Alignment::bottom_right(), spec.seed = 400 + list.size();
      change(spec);
      spec.captures = {{Stage::dropped_weights, {.mean_over_heads = true}}, {Stage::masked, {.queries = {0}}}};
      list.push_back(spec);
    }
  }
  return list;
}

void expect_same_bits(const cases::Answer& got, const cases::Answer& wanted, const std::string& what) {
  EXPECT_TRUE(same_bits(got.out, wanted.out)) << "out, " << what;
  EXPECT_TRUE(same_bits(got.lse, wanted.lse)) << "lse, " << what;
  for (std::size_t n = 0; n < wanted.captures.size(); ++n) {
    EXPECT_TRUE(same_bits(got.captures[n], wanted.captures[n])) << "capture " << n << ", " << what;
  }
}

TEST_P(Decoding, ALongCacheHasTheSameBitsOnAnyNumberOfThreads) {
  for (const CaseSpec& spec : long_caches()) {
    cases::Case test(spec);
    test.options.threads = 1;
    const cases::Answer wanted = cases::run(test);
    EXPECT_EQ(cases::mismatch(spec, wanted, cases::truth(test)), "") << describe(spec);
    for (const int threads : {2, 3, 7, 16}) {
      test.options.threads = threads;
      expect_same_bits(cases::run(test), wanted, std::to_string(threads) + " threads: " + describe(spec));
    }
  }
}

// Compares with the same calls without captures: captures are computed in a separate pass.
TEST_P(Decoding, ALongCacheHasTheSameBitsWithAndWithoutWeights) {
  for (CaseSpec& spec : long_caches()) {
    const cases::Answer with = cases::run(cases::Case(spec));
    spec.captures.clear();
    cases::Case test(spec);
    for (const int threads : {1, 2, 16}) {
      test.options.threads = threads;
      const cases::Answer got = cases::run(test);
      EXPECT_TRUE(same_bits(got.out, with.out)) << threads << " threads: " << describe(spec);
      EXPECT_TRUE(same_bits(got.lse, with.lse)) << threads << " threads: " << describe(spec);
    }
  }
}

// A pool may run tasks in any order, and all of them on one thread.
TEST_P(Decoding, ALongCacheHasTheSameBitsInAnyOrderOfTasks) {
  for (const CaseSpec& spec : long_caches()) {
    cases::Case test(spec);
    test.options.threads = 1;
    const cases::Answer wanted = cases::run(test);
    test.options.threads = 16;
    test.options.parallel_for = [](std::int64_t count, const Task& task) {
      for (std::int64_t n = count; n > 0; --n) task(n - 1);
    };
    expect_same_bits(cases::run(test), wanted, "backwards: " + describe(spec));
  }
}

// The tests above would pass even if threads never shared the keys of a row. Here they must share them, because one
// query of one kv head is all the work.
TEST_P(Decoding, TheKeysOfOneRowGoToSeveralWorkers) {
  CaseSpec spec{.name = "OneRow", .batch = 1, .query_heads = 8, .kv_heads = 1, .queries = 1, .keys = 5000};
  spec.head_size = spec.value_size = 128;
  cases::Case test(spec);
  test.options.threads = 4;
  std::int64_t most = 0;
  test.options.parallel_for = [&](std::int64_t count, const Task& task) {
    most = std::max(most, count);
    for (std::int64_t n = 0; n < count; ++n) task(n);
  };
  cases::run(test);
  EXPECT_GE(most, 2);
  EXPECT_LE(most, 4);
}

}  // namespace
}  // namespace rapt::test
