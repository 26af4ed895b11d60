// Attention with a cache, the memory and allocations of a cache, and every call that it rejects.
#include "rapt/kv_cache.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>

#include <gtest/gtest.h>

#include "cases/case.h"
#include "cases/compare.h"
#include "support/allocations.h"
#include "support/part_call.h"

namespace rapt::test {
namespace {

using cases::Stream;
using Ids = std::vector<std::int64_t>;

Tensor normal(const Dims& shape, std::uint64_t seed) {
  Tensor tensor(shape);
  Stream stream(seed);
  for (float& x : tensor.values<float>()) {
    const double radius = std::sqrt(-2.0 * std::log(1.0 - stream.uniform()));
    x = static_cast<float>(radius * std::cos(6.283185307179586 * stream.uniform()));
  }
  return tensor;
}

KvCacheConfig config_of(DType dtype, std::int64_t page_size) {
  KvCacheConfig config{.kv_heads = 2, .head_size = 64, .dtype = dtype, .sequences = 5};
  config.page_size = page_size;
  (page_size > 0 ? config.pages : config.length) = page_size > 0 ? 5 * (512 / page_size + 1) : 500;
  return config;
}

// The i8 rows that the cache must write.
struct Quantized {
  explicit Quantized(const Tensor& from)
      : numbers(from.shape(), DType::i8), scales({from.size(0), from.size(1), from.size(2)}) {
    const auto width = static_cast<std::size_t>(from.size(3));
    for (std::size_t row = 0; row < scales.values<float>().size(); ++row) {
      const auto x = from.values<float>().subspan(row * width, width);
      float largest = 0.0F;
      for (const float each : x) largest = std::max(largest, std::abs(each));
      const float scale = scales.values<float>()[row] = largest / 127.0F;
      for (std::size_t d = 0; d < width; ++d) {
        numbers.values<std::int8_t>()[row * width + d] = static_cast<std::int8_t>(std::nearbyint(x[d] / scale));
      }
    }
  }
  Tensor numbers, scales;
};

constexpr DType kStorage[] = {DType::f32, DType::bf16, DType::f16, DType::i8};

TEST(KvCache, GivesAttentionTheBitsOfTheTensors) {
  const Tensor key = normal({3, 2, 400, 64}, 1), value = normal({3, 2, 400, 64}, 2);
  for (const DType dtype : kStorage) {
    for (const std::int64_t page_size : {0, 16, 64, 256}) {
      KvCache cache(config_of(dtype, page_size));
      for (int n = 0; n < 4; ++n) cache.add();
      const Ids lengths = {400, 261, 33};
      for (const Ids& ids : {Ids{0, 1, 2}, Ids{3, 0, 2}}) {
        for (const std::int64_t id : {0, 1, 2, 3}) cache.truncate(id, 0);
        Ids done = {0, 0, 0};
        for (const std::int64_t step : {1, 30, 7, 100, 1, 300}) {  // rows append different numbers of tokens
          const auto part = [&](const Tensor& from) {
            Tensor some({3, 2, step, 64});
            for (std::int64_t b = 0; b < 3; ++b) {
              const std::int64_t first = done[static_cast<std::size_t>(b)],
                                 last = std::min<std::int64_t>(400, first + step);
              copy(from.view().select(0, b).slice(1, first, last), some.view().select(0, b).slice(1, 0, last - first));
            }
            return some;
          };
          Ids counts;
          for (std::size_t b = 0; b < 3; ++b) counts.push_back(std::min(step, lengths[b] - done[b]));
          cache.append(ids, part(key), part(value), counts);
          for (std::size_t b = 0; b < 3; ++b) done[b] += counts[b];
        }
        ASSERT_EQ(done, lengths);
        CacheView seen;
        cache.view(ids, seen);
        for (const std::int64_t queries : {1, 40}) {
          const Tensor query = normal({3, 4, queries, 64}, 3);
          AttentionOptions options{.causal = true, .alignment = Alignment::bottom_right()};
          options.key_lengths = lengths;
          Tensor wanted;
          if (dtype == DType::i8) {
            const Quantized k(key), v(value);
            options.key_scales = k.scales, options.value_scales = v.scales;
            wanted = attention(query, k.numbers, v.numbers, options);
          } else {
            wanted = attention(query, key.to(dtype), value.to(dtype), options);
          }
          seen.apply(options);
          EXPECT_TRUE(same_bits(attention(query, seen.key, seen.value, options), wanted))
              << name_of(dtype) << ", pages of " << page_size << ", " << queries << " queries";
        }
      }
    }
  }
}

TEST(KvCache, TakesAnyStridesAndTypes) {
  const Tensor tokens = normal({2, 9, 2, 64}, 5).to(DType::bf16);
  for (const DType dtype : kStorage) {
    KvCache cache(config_of(dtype, 16)), plain(config_of(dtype, 16));
    const Ids ids = {cache.add(), cache.add()};
    plain.add(), plain.add();
    const ConstTensorView view = tokens.view().transpose(1, 2);
    cache.append(ids, view, view);
    const Tensor dense = Tensor::copy_of(view, DType::f32);
    plain.append(ids, dense, dense);
    CacheView a, b;
    cache.view(ids, a), plain.view(ids, b);
    EXPECT_TRUE(same_bits(a.key, b.key) && same_bits(a.value, b.value)) << name_of(dtype);
  }
}

TEST(KvCache, InI8LosesLessThanOnePerCent) {
  for (const std::int64_t size : {64, 128}) {
    const Tensor key = normal({1, 2, 1000, size}, 7), value = normal({1, 2, 1000, size}, 8);
    const Tensor query = normal({1, 8, 50, size}, 9);
    KvCache cache({.kv_heads = 2, .head_size = size, .dtype = DType::i8, .length = 1000});
    const Ids ids = {cache.add()};
    cache.append(ids, key, value);
    CacheView seen;
    cache.view(ids, seen);
    AttentionOptions options;
    seen.apply(options);
    EXPECT_LE(cases::relative_error(attention(query, seen.key, seen.value, options), attention(query, key, value)),
              0.01);
  }
}

TEST(KvCache, InI8KeepsZerosAndTheLargestNumber) {
  KvCache cache({.head_size = 4, .dtype = DType::i8, .length = 3});
  const Ids ids = {cache.add()};
  const Tensor tokens = Tensor::from<float>({1, 1, 3, 4}, {0, 0, 0, 0, 1e-45F, 0, 0, 0, 254, -254, 1, 3});
  cache.append(ids, tokens, tokens);
  CacheView seen;
  cache.view(ids, seen);
  EXPECT_EQ(seen.key_scales.at<float>(0, 0, 0), 0.0F);
  EXPECT_EQ(seen.key_scales.at<float>(0, 0, 1), 0.0F);  // its scale would underflow
  EXPECT_EQ(seen.key_scales.at<float>(0, 0, 2), 2.0F);
  for (std::int64_t d = 0; d < 4; ++d) EXPECT_EQ(seen.key.at<std::int8_t>(0, 0, 0, d), 0);
  const std::int8_t wanted[] = {127, -127, 0, 2};  // ties: 0.5 and 1.5 are rounded to even
  for (std::int64_t d = 0; d < 4; ++d) EXPECT_EQ(seen.key.at<std::int8_t>(0, 0, 2, d), wanted[d]);
}

TEST(KvCache, InI8TakesLessThanThreeTenthsOfF32) {
  for (const std::int64_t size : {64, 128}) {
    KvCacheConfig config{.kv_heads = 8, .head_size = size, .sequences = 4, .page_size = 64, .pages = 32};
    const std::size_t wide = KvCache(config).bytes();
    EXPECT_EQ(wide, static_cast<std::size_t>(2 * 8 * 32 * 64 * size * 4));
    config.dtype = DType::i8;
    EXPECT_LE(static_cast<double>(KvCache(config).bytes()), 0.3 * static_cast<double>(wide));
  }
}

TEST(KvCache, SaysHowMuchRoomIsLeft) {
  KvCache cache({.head_size = 1, .sequences = 3, .page_size = 16, .pages = 3});
  const std::int64_t id = cache.add();
  EXPECT_EQ(cache.room(id), 48);
  const Tensor tokens({1, 1, 20, 1});
  cache.append(Ids{id}, tokens, tokens);
  EXPECT_EQ(cache.room(id), 28);
  const std::int64_t forked = cache.fork(id);
  EXPECT_EQ(cache.free_pages(), 1);
  EXPECT_EQ(cache.room(id), 12);  // the last page is copied first
  cache.append(Ids{forked}, tokens.view().slice(2, 0, 1), tokens.view().slice(2, 0, 1));
  EXPECT_EQ(cache.free_pages(), 0);
  EXPECT_EQ(cache.room(id), 12);
  EXPECT_EQ(cache.room(forked), 11);
}

TEST(KvCache, AllocatesNothingInASteadyLoop) {
  if (!kCountsAllocations) GTEST_SKIP() << "allocations are not counted here";
  for (const DType dtype : kStorage) {
    for (const std::int64_t page_size : {0, 16}) {
      KvCache cache(config_of(dtype, page_size));
      for (int n = 0; n < 4; ++n) cache.add();
      const Ids ids = {3, 1};
      const Tensor key = normal({2, 2, 1, 64}, 1), query = normal({2, 8, 1, 64}, 2);
      Tensor out({2, 8, 1, 64});
      std::vector<std::byte> workspace(1 << 22);
      AttentionOptions options{.causal = true, .alignment = Alignment::bottom_right(), .threads = 2};
      options.workspace = workspace;
      const AttentionOutputs outputs{.out = out};
      CacheView seen;
      const auto step = [&] {
        cache.append(ids, key, key);
        cache.view(ids, seen);
        seen.apply(options);
        attention(outputs, query, seen.key, seen.value, options);
      };
      step();
      const std::int64_t before = allocation_count();
      for (int n = 0; n < 300; ++n) step();
      EXPECT_EQ(allocation_count() - before, 0) << name_of(dtype) << ", pages of " << page_size;
    }
  }
}

TEST(KvCache, AViewOfOtherSequencesAllocatesNothing) {
  if (!kCountsAllocations) GTEST_SKIP() << "allocations are not counted here";
  for (const std::int64_t page_size : {0, 16}) {
    KvCache cache(config_of(DType::f32, page_size));
    for (int n = 0; n < 4; ++n) cache.add();
    CacheView seen;
    cache.view(Ids{1, 2}, seen);
    const std::int64_t before = allocation_count();
    const Ids apart = {3, 1};  // not in a row, so the view needs a table of pages
    const std::int64_t of_ids = allocation_count() - before;
    cache.view(apart, seen);
    EXPECT_EQ(allocation_count() - before, of_ids) << "pages of " << page_size;
  }
}

// ---------------------------------------------------------------- refusals

struct BadCall {
  const char* name;
  std::function<void(KvCache&)> call;
  const char* message;
};

// Two sequences, with 20 tokens in the first; three pages of 16, of which one is free.
KvCache small_cache(DType dtype = DType::f32) {
  KvCache cache(
      {.kv_heads = 2, .head_size = 4, .dtype = dtype, .sequences = 2, .length = 40, .page_size = 16, .pages = 3});
  cache.add(), cache.add();
  const Tensor tokens({1, 2, 20, 4});
  cache.append(Ids{0}, tokens, tokens);
  return cache;
}

void append(KvCache& cache, const Ids& ids, const Dims& shape, DType dtype = DType::f32, const Ids& counts = {}) {
  const Tensor tokens(shape, dtype);
  cache.append(ids, tokens, tokens, counts);
}

KvCacheConfig with(const std::function<void(KvCacheConfig&)>& change) {
  KvCacheConfig config{.kv_heads = 2, .head_size = 4, .sequences = 2, .page_size = 16, .pages = 3};
  change(config);
  return config;
}

// clang-format off
const std::vector<BadCall> kBadCalls = {
    {"Heads", [](KvCache&) { KvCache cache(with([](auto& c) { c.kv_heads = 0; })); }, "KvCache: kv_heads is 0; it must be positive"},
    {"HeadSize", [](KvCache&) { KvCache cache(with([](auto& c) { c.head_size = -1; })); }, "KvCache: head_size is -1; it must be positive"},
    {"ValueSize", [](KvCache&) { KvCache cache(with([](auto& c) { c.value_size = -4; })); }, "KvCache: value_size is -4; it must be positive"},
    {"Sequences", [](KvCache&) { KvCache cache(with([](auto& c) { c.sequences = 0; })); }, "KvCache: sequences is 0; it must be positive"},
    {"TooManyPages", [](KvCache&) { KvCache cache(with([](auto& c) { c.pages = std::int64_t{1} << 31; })); }, "KvCache: sequences is 2 and pages is 2147483648; each must be below 2^31"},
    {"Type", [](KvCache&) { KvCache cache(with([](auto& c) { c.dtype = DType::f64; })); }, "KvCache: dtype is f64; it must be f32, bf16, f16 or i8"},
    {"PageSize", [](KvCache&) { KvCache cache(with([](auto& c) { c.page_size = 24; })); }, "KvCache: page_size is 24; it must be a power of two from 16 to 2^30, or 0 for no pages"},
    {"PagesWithoutSize", [](KvCache&) { KvCache cache(with([](auto& c) { c.page_size = 0; })); }, "KvCache: pages is 3, but page_size is 0; give both, or neither"},
    {"SizeWithoutPages", [](KvCache&) { KvCache cache(with([](auto& c) { c.pages = 0; })); }, "KvCache: pages is 0; it must be positive"},
    {"NoLength", [](KvCache&) { KvCache cache(with([](auto& c) { c.page_size = c.pages = 0; })); }, "KvCache: length is 0; it must be positive"},
    {"LengthNegative", [](KvCache&) { KvCache cache(with([](auto& c) { c.length = -1; })); }, "KvCache: length is -1; it must be positive, or 0 for all pages"},
    {"AddToMany", [](KvCache& c) { c.add(); }, "KvCache::add: all 2 sequences are in use; remove one first"},
    {"ForkToMany", [](KvCache& c) { c.fork(0); }, "KvCache::fork: all 2 sequences are in use; remove one first"},
    {"ForkTooLong", [](KvCache& c) { c.fork(0, 21); }, "KvCache::fork: sequence 0 has 20 tokens; a fork cannot start with 21 of them"},
    {"ForkOfNone", [](KvCache& c) { c.fork(7); }, "KvCache::fork: there is no sequence 7; add() creates one"},
    {"RemoveTwice", [](KvCache& c) { append(c, {1}, {1, 2, 1, 4}); c.remove(1); c.remove(1); }, "KvCache::remove: there is no sequence 1; add() creates one"},
    {"TruncateToMore", [](KvCache& c) { c.truncate(0, 30); }, "KvCache::truncate: sequence 0 has 20 tokens; it cannot be truncated to 30"},
    {"TruncateNone", [](KvCache& c) { c.truncate(2, 0); }, "KvCache::truncate: there is no sequence 2; add() creates one"},
    {"LengthOfNone", [](KvCache& c) { c.length(-1); }, "KvCache::length: there is no sequence -1; add() creates one"},
    {"RoomOfNone", [](KvCache& c) { c.room(5); }, "KvCache::room: there is no sequence 5; add() creates one"},
    {"ViewOfNone", [](KvCache& c) { CacheView view; c.view(Ids{0, 3}, view); }, "KvCache::view: there is no sequence 3; add() creates one"},
    {"AppendToNone", [](KvCache& c) { append(c, {0, 9}, {2, 2, 1, 4}); }, "KvCache::append: there is no sequence 9; add() creates one"},
    {"AppendTwice", [](KvCache& c) { append(c, {1, 0, 1}, {3, 2, 1, 4}); }, "KvCache::append: sequence 1 is listed twice; give its tokens in one row"},
    {"AppendRank", [](KvCache& c) { append(c, {0}, {2, 1, 4}); }, "KvCache::append: key has shape (2, 1, 4); it must be (B, Hkv, L, D)"},
    {"AppendRows", [](KvCache& c) { append(c, {0}, {2, 2, 1, 4}); }, "KvCache::append: key has shape (2, 2, 1, 4); it must be (B, Hkv, L, D) = (1, 2, 1, 4)"},
    {"AppendHeads", [](KvCache& c) { append(c, {0}, {1, 1, 1, 4}); }, "KvCache::append: key has shape (1, 1, 1, 4); it must be (B, Hkv, L, D) = (1, 2, 1, 4)"},
    {"AppendNoKey", [](KvCache& c) { c.append(Ids{0}, {}, {}); }, "KvCache::append: key is missing; give a tensor"},
    {"AppendValue", [](KvCache& c) { const Tensor k({1, 2, 3, 4}), v({1, 2, 2, 4}); c.append(Ids{0}, k, v); }, "KvCache::append: value has shape (1, 2, 2, 4); it must be (B, Hkv, L, Dv) = (1, 2, 3, 4)"},
    {"AppendType", [](KvCache& c) { append(c, {0}, {1, 2, 1, 4}, DType::f64); }, "KvCache::append: key is f64; it must be f32, bf16 or f16"},
    {"AppendCounts", [](KvCache& c) { append(c, {0, 1}, {2, 2, 5, 4}, DType::f32, {1}); }, "KvCache::append: counts has 1 values for 2 sequences; give one for each"},
    {"AppendCount", [](KvCache& c) { append(c, {0, 1}, {2, 2, 5, 4}, DType::f32, {1, 6}); }, "KvCache::append: counts[1] is 6; it must be from 0 to 5, the number of tokens in a row of key"},
    {"AppendTooLong", [](KvCache& c) { append(c, {0}, {1, 2, 21, 4}); }, "KvCache::append: sequence 0 has 20 tokens and gets 21 more; a sequence has room for 40"},
    {"AppendFull", [](KvCache& c) { append(c, {1, 0}, {2, 2, 14, 4}); }, "KvCache::append: sequence 0 has no room for 14 more tokens: this call needs 2 pages, 1 of 3 are free"},
    {"AppendFullAtOnce", [](KvCache& c) { append(c, {1}, {1, 2, 33, 4}); }, "KvCache::append: sequence 1 has no room for 33 more tokens: this call needs 3 pages, 1 of 3 are free"},
};
// clang-format on

class BadCacheCall : public testing::TestWithParam<BadCall> {};
INSTANTIATE_TEST_SUITE_P(Calls, BadCacheCall, testing::ValuesIn(kBadCalls),
                         [](const auto& instance) { return std::string(instance.param.name); });

TEST_P(BadCacheCall, IsRefusedWithItsOwnMessageAndChangesNothing) {
  KvCache cache = small_cache();
  try {
    GetParam().call(cache);
    FAIL() << "was not refused";
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), GetParam().message);
  }
  EXPECT_EQ(cache.free_pages(), 1);
  EXPECT_EQ(cache.length(0), 20);
}

TEST(KvCache, InI8RefusesWhatIsNotFinite) {
  for (const float bad : {std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN()}) {
    KvCache cache = small_cache(DType::i8);
    Tensor key({2, 2, 3, 4}), value({2, 2, 3, 4});
    value.view().at<float>(1, 0, 2, 3) = bad;
    try {
      cache.append(Ids{0, 1}, key, value);
      FAIL() << "was not refused";
    } catch (const Error& error) {
      EXPECT_STREQ(error.what(),
                   "KvCache::append: value has a non-finite number at row 1, head 0, token 2; i8 cannot store it");
    }
    EXPECT_EQ(cache.length(0), 20);
    EXPECT_EQ(cache.length(1), 0);
    cache.append(Ids{0, 1}, key, value, Ids{3, 2});  // the bad token is past its row's count
    EXPECT_EQ(cache.length(1), 2);
  }
}

}  // namespace
}  // namespace rapt::test
