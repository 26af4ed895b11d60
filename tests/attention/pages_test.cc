// Attention on keys and values in pages, also in i8, has the same bits as on contiguous ones, for any page size, order
// of pages, number of queries and number of threads.
#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <sys/mman.h>
#include <unistd.h>
#include <vector>

#include <gtest/gtest.h>

#include "cases/list.h"
#include "support/every_instruction_set.h"
#include "support/part_call.h"

namespace rapt::test {
namespace {

using cases::CaseSpec;

class PagesOnEverySet : public EveryInstructionSet {};
RAPT_ON_EVERY_INSTRUCTION_SET(PagesOnEverySet);

constexpr DType kStorage[] = {DType::f32, DType::bf16, DType::f16, DType::i8};

// Three rows of different lengths, within 1024 keys. This is a multiple of every page size, so that a seed gives the
// same numbers with and without pages.
CaseSpec three_rows(std::int64_t queries, DType storage) {
  CaseSpec spec{.name = "ThreeRows", .batch = 3, .query_heads = 4, .kv_heads = 2, .queries = queries, .keys = 1024};
  spec.head_size = 24, spec.value_size = 40, spec.kv_type = storage;
  spec.key_lengths = {1001, 300, 17};
  spec.causal = true, spec.alignment = Alignment::bottom_right(), spec.seed = 77;
  return spec;
}

void expect_same_bits(const cases::Answer& got, const cases::Answer& wanted, const std::string& what) {
  EXPECT_TRUE(same_bits(got.out, wanted.out)) << "out, " << what;
  EXPECT_TRUE(same_bits(got.lse, wanted.lse)) << "lse, " << what;
  for (std::size_t n = 0; n < wanted.captures.size(); ++n) {
    EXPECT_TRUE(same_bits(got.captures[n], wanted.captures[n])) << "capture " << n << ", " << what;
  }
}

TEST_P(PagesOnEverySet, HaveTheBitsOfOnePiece) {
  for (const DType storage : kStorage) {
    for (const std::int64_t queries : {1, 5, 64, 300}) {
      if (queries == 300 && (GetParam() == "scalar" || kAddressSanitizer || kThreadSanitizer)) continue;  // slow there
      const CaseSpec whole = three_rows(queries, storage);
      cases::Case plain(whole);
      plain.options.threads = 1;
      const cases::Answer wanted = cases::run(plain);
      for (const std::int64_t size : {16, 64, 256, 512}) {
        CaseSpec spec = whole;
        spec.put_in_pages(size);
        cases::Case test(spec);
        for (const int threads : {1, 2, 7}) {
          test.options.threads = threads;
          expect_same_bits(cases::run(test), wanted, std::to_string(threads) + " threads: " + describe(spec));
        }
      }
    }
  }
}

// With windows and masks, the first key read can be anywhere in a page.
TEST_P(PagesOnEverySet, HaveTheBitsOfOnePieceWithEachOption) {
  const std::function<void(CaseSpec&)> changes[] = {
      [](CaseSpec& s) { s.window.left = 300, s.softcap = 5.0; },
      [](CaseSpec& s) { s.window.left = 29, s.alibi = true; },
      [](CaseSpec& s) { s.causal = false, s.masks = {{.kind = Mask::Kind::drop, .chance = 0.95}}; },
      [](CaseSpec& s) {
        s.masks = {{.kind = Mask::Kind::keep, .one_head = true}, {.kind = Mask::Kind::add}};
      },
      [](CaseSpec& s) { s.sinks = true, s.dropout = {.rate = 0.3, .seed = 5}, s.query_heads = 2; },
      [](CaseSpec& s) { s.kv_heads = 1, s.query_heads = 8, s.layout = cases::MemoryLayout::blhd; },
      [](CaseSpec& s) { s.query_type = DType::bf16, s.value_size = 33, s.layout = cases::MemoryLayout::gaps; },
  };
  std::size_t number = 0;
  for (const auto& change : changes) {
    for (const std::int64_t queries : {1, 3, 50}) {
      for (const std::int64_t size : {16, 32, 128, 512}) {
        CaseSpec spec = three_rows(queries, kStorage[number++ % 4]);
        spec.captures = {{Stage::masked, {}}, {Stage::dropped_weights, {.mean_over_heads = true}}};
        change(spec);
        const cases::Answer wanted = cases::run(cases::Case(spec));
        spec.put_in_pages(size);
        expect_same_bits(cases::run(cases::Case(spec)), wanted, describe(spec));
      }
    }
  }
}

// The whole call is one causal pass on contiguous keys; each step reads pages.
TEST_P(PagesOnEverySet, TokenByTokenHaveTheBitsOfOneCausalPass) {
  for (const DType storage : kStorage) {
    CaseSpec spec{.name = "Tokens", .batch = 1, .query_heads = 8, .kv_heads = 2, .queries = 512, .keys = 512};
    spec.head_size = spec.value_size = 32, spec.kv_type = storage, spec.key_lengths = {512};
    spec.causal = true, spec.alignment = Alignment::top_left(), spec.seed = 88;
    const cases::Case plain(spec);
    const Result whole = call_part(plain, whole_of(spec));
    for (const std::int64_t size : {16, 64, 256}) {
      spec.put_in_pages(size);
      cases::Case test(spec);
      for (std::int64_t i = 0; i < 512; i += (i + 2) % 64 < 4 ? 1 : 11) {
        test.options.threads = i % 2 == 0 ? 1 : 7;
        Part part = whole_of(spec);
        part.queries = {i, i + 1}, part.keys = i + 1;
        expect_part_has_bits_of(whole, test, part);
      }
      for (const Range& queries : {Range{0, 40}, Range{40, 300}, Range{300, 512}}) {
        Part part = whole_of(spec);
        part.queries = queries, part.keys = queries.end;
        expect_part_has_bits_of(whole, test, part);
      }
    }
  }
}

// With one page per row, a table selects rows of a tensor, in any order and repeatedly.
TEST_P(PagesOnEverySet, OneToARowPickRowsOfATensor) {
  for (const DType storage : kStorage) {
    const cases::Case test(three_rows(2, storage));
    const Result all = call(test.query, test.key, test.value, test.options);
    const std::vector<std::int32_t> rows = {2, 0, 2, 1};
    for (std::size_t n = 0; n < rows.size(); ++n) {
      AttentionOptions options = test.options;
      options.pages = {std::span(rows).subspan(n, 1), 1};
      options.key_lengths = {test.options.key_lengths[static_cast<std::size_t>(rows[n])]};
      const ConstTensorView query = test.query.slice(0, rows[n], rows[n] + 1);
      const Result got = call(query, test.key, test.value, options);
      EXPECT_TRUE(same_bits(got.out, all.out.view().slice(0, rows[n], rows[n] + 1))) << name_of(storage);
    }
  }
}

// If consecutive pages of the table are adjacent in memory, they are read as one run. With a window, the first key can
// be anywhere in its page.
TEST_P(PagesOnEverySet, ThatFollowOneAnotherHaveTheBitsOfOnePiece) {
  constexpr std::int64_t kSize = 64, kKeys = 1024, kLength = 809;
  const std::vector<std::vector<std::int32_t>> tables = {{3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15},
                                                         {5, 6, 7, 12, 13, 1, 2, 3, 4, 9, 10, 0, 8}};
  const auto pages_of = [](const ConstTensorView& one_row) {
    const Dims shape =
        one_row.rank() == 4 ? Dims{2, kKeys / kSize, kSize, one_row.size(3)} : Dims{2, kKeys / kSize, kSize};
    return one_row.reshape(shape).transpose(0, 1);
  };
  const auto gathered = [&](const ConstTensorView& one_row, const std::vector<std::int32_t>& table) {
    Dims shape = one_row.shape();
    shape[2] = kSize * std::ssize(table);
    Tensor keys(shape, one_row.dtype());
    for (std::int64_t n = 0; n < std::ssize(table); ++n) {
      const std::int64_t from = kSize * table[static_cast<std::size_t>(n)];
      copy(one_row.slice(2, from, from + kSize), keys.view().slice(2, n * kSize, (n + 1) * kSize));
    }
    return keys;
  };
  for (const DType storage : kStorage) {
    for (const std::int64_t queries : {2, 20, 100}) {
      CaseSpec spec = three_rows(queries, storage);
      spec.key_lengths.clear();
      const cases::Case test(spec);
      const auto row = [](const ConstTensorView& view) { return view.slice(0, 0, 1); };
      for (const std::vector<std::int32_t>& table : tables) {
        for (const std::int64_t left : {1000, 150, 33}) {
          AttentionOptions whole = test.options;
          whole.key_lengths = {kLength}, whole.window.left = left;
          AttentionOptions paged = whole;
          paged.pages = {table, std::ssize(table)};
          Tensor key_scales, value_scales;
          if (storage == DType::i8) {
            key_scales = gathered(row(test.options.key_scales), table);
            value_scales = gathered(row(test.options.value_scales), table);
            whole.key_scales = key_scales.view(), whole.value_scales = value_scales.view();
            paged.key_scales = pages_of(row(test.options.key_scales));
            paged.value_scales = pages_of(row(test.options.value_scales));
          }
          const Result wanted =
              call(row(test.query), gathered(row(test.key), table), gathered(row(test.value), table), whole);
          const Result got = call(row(test.query), pages_of(row(test.key)), pages_of(row(test.value)), paged);
          EXPECT_TRUE(same_bits(got.out, wanted.out))
              << name_of(storage) << ", " << queries << " queries, window " << left << ", page " << table[0];
        }
      }
    }
  }
}

// A page of 16 keys of 64 f32 numbers has the size of a memory page, so pages that must not be read can be protected.
class ProtectedPages {
 public:
  static constexpr std::int64_t kPages = 8, kSize = 16, kWidth = 64;
  static constexpr std::size_t kBytes = kSize * kWidth * sizeof(float);

  ProtectedPages()
      : memory_(mmap(nullptr, kPages * kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)) {
    std::fill_n(static_cast<float*>(memory_), kPages * kSize * kWidth, std::numeric_limits<float>::quiet_NaN());
  }
  ~ProtectedPages() { munmap(memory_, kPages * kBytes); }
  ProtectedPages(const ProtectedPages&) = delete;
  ProtectedPages& operator=(const ProtectedPages&) = delete;

  TensorView view() const { return {memory_, DType::f32, {kPages, 1, kSize, kWidth}}; }
  void fill(std::int64_t page, std::int64_t keys) const {
    for (std::int64_t n = 0; n < keys * kWidth; ++n) {
      static_cast<float*>(memory_)[page * kSize * kWidth + n] = static_cast<float>(n % 7) - 3.0F;
    }
  }
  bool forbid(std::int64_t page) const {
    return mprotect(static_cast<std::byte*>(memory_) + static_cast<std::size_t>(page) * kBytes, kBytes, PROT_NONE) == 0;
  }

 private:
  void* memory_;
};

TEST_P(PagesOnEverySet, AreNotReadWhereNoKeyIs) {
  if (static_cast<std::size_t>(sysconf(_SC_PAGESIZE)) != ProtectedPages::kBytes) GTEST_SKIP() << "other pages here";
  const ProtectedPages key, value;
  // Row 0 has 23 keys in pages 5 and 2, row 1 has 16 in page 7; the other table entries are past the key lengths.
  const std::vector<std::int32_t> table = {5, 2, 0, 7, 1, 9};
  for (const ProtectedPages* pages : {&key, &value}) {
    pages->fill(5, 16), pages->fill(2, 7), pages->fill(7, 16);
    for (const std::int64_t unused : {0, 1, 3, 4, 6}) ASSERT_TRUE(pages->forbid(unused));
  }
  for (const std::int64_t queries : {1, 5, 64}) {
    Tensor query({2, 2, queries, ProtectedPages::kWidth});
    std::fill(query.values<float>().begin(), query.values<float>().end(), 0.1F);
    Tensor weights({2, 2, queries, 48}), out({2, 2, queries, ProtectedPages::kWidth});
    AttentionOptions options;
    options.key_lengths = {23, 16}, options.pages = {table, 3};
    attention({.out = out, .captures = {{.stage = Stage::raw, .to = weights}}}, query, key.view(), value.view(),
              options);
    for (const float number : out.values<float>()) ASSERT_FALSE(std::isnan(number));
    options.engine = Engine::reference;
    const Tensor by_reference = attention(query, key.view(), value.view(), options);
    for (const float number : by_reference.values<float>()) ASSERT_FALSE(std::isnan(number));
  }
}

TEST(I8, CountsAsItsNumbersTimesItsScaleInF32) {
  CaseSpec spec = three_rows(7, DType::i8);
  const cases::Case test(spec);
  const auto dequantized = [](const ConstTensorView& numbers, const ConstTensorView& scales) {
    Tensor result = Tensor::copy_of(numbers, DType::f32);
    for (std::int64_t b = 0; b < numbers.size(0); ++b) {
      for (std::int64_t h = 0; h < numbers.size(1); ++h) {
        for (std::int64_t j = 0; j < numbers.size(2); ++j) {
          for (std::int64_t d = 0; d < numbers.size(3); ++d) {
            result.view().at<float>(b, h, j, d) *= scales.at<float>(b, h, j);
          }
        }
      }
    }
    return result;
  };
  const Tensor key = dequantized(test.key, test.options.key_scales);
  const Tensor value = dequantized(test.value, test.options.value_scales);
  AttentionOptions plain = test.options;
  plain.key_scales = plain.value_scales = {};
  for (const Engine engine : {Engine::cpu, Engine::reference}) {
    AttentionOptions options = test.options;
    options.engine = plain.engine = engine;
    EXPECT_TRUE(
        same_bits(attention(test.query, test.key, test.value, options), attention(test.query, key, value, plain)));
  }
}

TEST(I8, ConvertsToNearestEvenWithinItsRange) {
  const Tensor numbers = Tensor::from<double>(
      {8}, {0.5, 1.5, -2.5, 126.9, 1000.0, -1e30, -128.0, std::numeric_limits<double>::quiet_NaN()});
  const Tensor stored = numbers.to(DType::i8);
  const std::vector<std::int8_t> wanted = {0, 2, -2, 127, 127, -128, -128, 0};
  EXPECT_TRUE(std::equal(wanted.begin(), wanted.end(), stored.values<std::int8_t>().begin()));
  EXPECT_EQ(stored.to(DType::f32).values<float>()[2], -2.0F);
}

}  // namespace
}  // namespace rapt::test
