// Same bits: the result of a row does not depend on threads, on the other rows, on how a call is split into several, or
// on the memory layout. Exact comparisons, on every instruction set of this machine.
#include <algorithm>

#include <gtest/gtest.h>

#include "cases/list.h"
#include "support/every_instruction_set.h"
#include "support/part_call.h"
#include "support/settings.h"

namespace rapt::test {
namespace {

using cases::CaseSpec;

class SameBits : public EveryInstructionSet {};
RAPT_ON_EVERY_INSTRUCTION_SET(SameBits);

// Calls that cover several chunks of keys, several tiles of rows, groups of heads, and combinations of options.
std::vector<CaseSpec> settings(std::int64_t batch, std::int64_t queries, std::int64_t keys) {
  return settings_of_many_heads(
      batch, queries, keys,
      {
          [](CaseSpec& s) {
            s.masks = {{.kind = Mask::Kind::fill, .value = -2.0}, {.kind = Mask::Kind::drop, .plane_only = true}};
            s.window = {150, 40};
          },
          [](CaseSpec& s) { s.causal = true, s.layout = cases::MemoryLayout::blhd, s.kv_heads = 1, s.head_size = 64; },
          [](CaseSpec& s) { s.causal = true, s.query_heads = 2, s.spread = 8.0, s.head_size = s.value_size = 33; },
      });
}

TEST_P(SameBits, ForAnyNumberOfThreads) {
  for (const CaseSpec& spec : settings(2, 150, 600)) {
    cases::Case test(spec);
    test.options.threads = 1;
    const Result wanted = call(test.query, test.key, test.value, test.options);
    for (const int threads : {2, 3, 7}) {
      test.options.threads = threads;
      const Result got = call(test.query, test.key, test.value, test.options);
      EXPECT_TRUE(same_bits(got.out, wanted.out)) << threads << " threads: " << describe(spec);
      EXPECT_TRUE(same_bits(got.lse, wanted.lse)) << threads << " threads: " << describe(spec);
    }
  }
}

TEST_P(SameBits, ForARowAloneAndInsideABatchOfEight) {
  for (CaseSpec& spec : settings(8, 40, 300)) {
    if (spec.seed % 2 == 0) spec.key_lengths = {300, 7, 256, 257, 299, 1, 0, 128};
    const cases::Case test(spec);
    const Result whole = call_part(test, whole_of(spec));
    for (std::int64_t b = 0; b < 8; ++b) {
      Part part = whole_of(spec);
      part.batch = {b, b + 1};
      expect_part_has_bits_of(whole, test, part);
    }
  }
}

TEST_P(SameBits, ForQueriesCutIntoSeveralCalls) {
  for (const CaseSpec& spec : settings(1, 300, 700)) {
    const cases::Case test(spec);
    const Result whole = call_part(test, whole_of(spec));
    for (const std::int64_t step : {1, 7, 48, 129}) {
      for (std::int64_t first = 0; first < spec.queries; first += step) {
        if (step == 1 && first % 17 != 0) continue;  // a sample of single queries
        Part part = whole_of(spec);
        part.queries = {first, std::min(first + step, spec.queries)};
        expect_part_has_bits_of(whole, test, part);
      }
    }
  }
}

// Decoding: one query at a time, against the keys up to its position, gives the bits of one causal pass.
TEST_P(SameBits, ForTokenByTokenDecodingAndOneCausalPass) {
  for (const CaseSpec& spec : settings(1, 700, 700)) {
    if (!spec.causal) continue;
    const cases::Case test(spec);
    const Result whole = call_part(test, whole_of(spec));
    for (std::int64_t i = 0; i < spec.queries; i += (i > 250 && i < 260) || (i > 508 && i < 516) ? 1 : 13) {
      Part part = whole_of(spec);
      part.queries = {i, i + 1};
      part.keys = i + 1;
      expect_part_has_bits_of(whole, test, part);
    }
    for (const auto& [first, last] : {std::pair{0, 100}, std::pair{100, 257}, std::pair{257, 600}, {600, 700}}) {
      Part part = whole_of(spec);
      part.queries = {first, last};
      part.keys = last;
      expect_part_has_bits_of(whole, test, part);
    }
  }
}

// A cache with more room than tokens: the key length gives the number of tokens.
TEST_P(SameBits, ForACacheCutShortByKeyLengthsAndByASlice) {
  for (const std::int64_t length : {1, 255, 256, 257, 511, 640}) {
    for (CaseSpec& spec : settings(1, 3, 700)) {
      spec.alignment = Alignment::offset(length - 3);
      CaseSpec with_length = spec;
      with_length.key_lengths = {length};
      const cases::Case sliced(spec), limited(with_length);
      Part part = whole_of(spec);
      part.keys = length;
      const Result wanted = call_part(sliced, part);
      const Result got = call_part(limited, whole_of(spec));
      EXPECT_TRUE(same_bits(got.out, wanted.out)) << describe(with_length);
      EXPECT_TRUE(same_bits(got.lse, wanted.lse)) << describe(with_length);
    }
  }
}

TEST_P(SameBits, ForSlicesOfTheHeads) {
  for (CaseSpec& spec : settings(2, 70, 300)) {
    spec.kv_heads = std::max<std::int64_t>(spec.kv_heads, 2);
    const cases::Case test(spec);
    const Result whole = call_part(test, whole_of(spec));
    for (std::int64_t head = 0; head < spec.kv_heads; ++head) {
      Part part = whole_of(spec);
      part.kv_heads = {head, head + 1};
      expect_part_has_bits_of(whole, test, part);
    }
  }
}

// Grouped heads share the work on their kv head: if the kv head is repeated instead, no bit may change.
TEST_P(SameBits, ForGroupedHeadsAndRepeatedKvHeads) {
  for (const CaseSpec& spec : settings(1, 90, 400)) {
    const cases::Case test(spec);
    const std::int64_t group = spec.query_heads / spec.kv_heads;
    const auto repeated = [&](const ConstTensorView& view) {
      const Tensor copies = Tensor::copy_of(view.unsqueeze(2).expand(
          {view.size(0), view.size(1), group, view.size(2), view.size(3)}));  // (B, Hkv, group, L, D)
      return Tensor::copy_of(copies.view().merge(1));
    };
    const Tensor key = repeated(test.key), value = repeated(test.value);
    const Result wanted = call(test.query, key, value, test.options);
    EXPECT_TRUE(same_bits(call(test.query, test.key, test.value, test.options).out, wanted.out)) << describe(spec);
  }
}

TEST_P(SameBits, ForEveryLayoutAndMisalignedMemory) {
  for (CaseSpec& spec : settings(2, 60, 300)) {
    spec.layout = cases::MemoryLayout::bhld;
    const cases::Answer wanted = cases::run(cases::Case(spec));
    for (int layout = 1; layout <= static_cast<int>(cases::MemoryLayout::shifted); ++layout) {
      spec.layout = static_cast<cases::MemoryLayout>(layout);
      const cases::Answer got = cases::run(cases::Case(spec));
      EXPECT_TRUE(same_bits(got.out, wanted.out)) << describe(spec);
      EXPECT_TRUE(same_bits(got.lse, wanted.lse)) << describe(spec);
    }
  }
}

TEST_P(SameBits, ForInputsThatStartAtAnyElement) {
  const CaseSpec spec = settings(1, 50, 300)[1];
  const cases::Case test(spec);
  const Result wanted = call(test.query, test.key, test.value, test.options);
  for (std::int64_t shift = 1; shift < 16; ++shift) {
    const auto shifted = [&](const ConstTensorView& view, Tensor& memory) {
      memory = Tensor({view.count() + shift}, view.dtype());
      const TensorView moved = memory.view().slice(0, shift, view.count() + shift).reshape(view.shape());
      copy(view, moved);
      return ConstTensorView(moved);
    };
    Tensor q, k, v;
    const Result got = call(shifted(test.query, q), shifted(test.key, k), shifted(test.value, v), test.options);
    EXPECT_TRUE(same_bits(got.out, wanted.out)) << shift;
  }
}

TEST_P(SameBits, WhateverElseIsAskedFor) {
  for (const CaseSpec& spec : settings(2, 60, 300)) {
    const cases::Case test(spec);
    const Result wanted = call(test.query, test.key, test.value, test.options);
    EXPECT_TRUE(same_bits(attention(test.query, test.key, test.value, test.options), wanted.out)) << "out alone";
    Result got{Tensor(wanted.out.shape(), wanted.out.dtype()), Tensor(wanted.lse.shape())};
    Tensor weights({2, spec.query_heads, 60, 300}), mean({2, 1, 300});
    attention({.out = got.out,
               .lse = got.lse,
               .captures = {{Stage::dropped_weights, weights, {}},
                            {Stage::weights, mean, {.mean_over_heads = true, .queries = {59}}}}},
              test.query, test.key, test.value, test.options);
    EXPECT_TRUE(same_bits(got.out, wanted.out)) << "with weights: " << describe(spec);
    EXPECT_TRUE(same_bits(got.lse, wanted.lse)) << "with weights: " << describe(spec);
  }
}

// Each packed sequence is compared with the same sequence as a row of a padded batch.
TEST_P(SameBits, ForPackedSequencesAndAPaddedBatch) {
  const std::vector<std::int64_t> query_starts = {0, 5, 5, 80, 200}, key_starts = {0, 5, 300, 300, 900};
  for (CaseSpec& spec : settings(1, 200, 900)) {
    if (!spec.masks.empty()) continue;  // masks of the packed plane have no padded equivalent
    spec.packed = {query_starts, key_starts};
    const cases::Case packed(spec);
    const Result got = call(packed.query, packed.key, packed.value, packed.options);

    AttentionOptions options = packed.options;
    options.packed = {};
    Tensor query({4, spec.query_heads, 120, spec.head_size}, spec.query_type);
    Tensor key({4, spec.kv_heads, 600, spec.head_size}, spec.kv_type);
    Tensor value({4, spec.kv_heads, 600, spec.value_size}, spec.kv_type);
    const auto fill_row = [](const ConstTensorView& from, Tensor& to, std::int64_t row, Range range) {
      copy(from.slice(2, range.begin, range.end),
           to.view().slice(0, row, row + 1).slice(2, 0, range.end - range.begin));
    };
    for (std::size_t n = 0; n < 4; ++n) {
      const auto row = static_cast<std::int64_t>(n);
      fill_row(packed.query, query, row, {query_starts[n], query_starts[n + 1]});
      fill_row(packed.key, key, row, {key_starts[n], key_starts[n + 1]});
      fill_row(packed.value, value, row, {key_starts[n], key_starts[n + 1]});
      options.key_lengths.push_back(key_starts[n + 1] - key_starts[n]);
    }
    const Result padded = call(query, key, value, options);
    for (std::size_t n = 0; n < 4; ++n) {
      const auto row = static_cast<std::int64_t>(n);
      const std::int64_t begin = query_starts[n], end = query_starts[n + 1];
      EXPECT_TRUE(same_bits(got.out.view().slice(2, begin, end),
                            padded.out.view().slice(0, row, row + 1).slice(2, 0, end - begin)))
          << "sequence " << n << ": " << describe(spec);
      EXPECT_TRUE(same_bits(got.lse.view().slice(2, begin, end),
                            padded.lse.view().slice(0, row, row + 1).slice(2, 0, end - begin)))
          << "sequence " << n << ": " << describe(spec);
    }
  }
}

// The cases of the list, and random cases, whose queries can be split: each is split in two at the middle query.
TEST_P(SameBits, ForEveryCaseCutInTwo) {
  std::vector<CaseSpec> list = cases::all_cases();
  for (std::uint64_t seed = 0; seed < 150; ++seed) list.push_back(cases::random_case(seed));
  for (const CaseSpec& spec : list) {
    const bool one_offset = spec.alignment.kind != Alignment::Kind::bottom_right && spec.alignment.values.size() < 2;
    const bool possible = spec.queries >= 2 && spec.kv_heads > 0 && spec.packed.query_starts.empty() && one_offset &&
                          spec.query_type != DType::f64;
    if (!possible) continue;
    const cases::Case test(spec);
    const Result whole = call_part(test, whole_of(spec));
    const std::int64_t middle = spec.queries / 2;
    for (const Range& queries : {Range{0, middle}, Range{middle, spec.queries}}) {
      Part part = whole_of(spec);
      part.queries = queries;
      expect_part_has_bits_of(whole, test, part);
    }
  }
}

}  // namespace
}  // namespace rapt::test
