// MultiHeadAttention with a cache: token by token it gives the same bits as one pass, for every kind of cache.

#include <algorithm>
#include <functional>
#include <numeric>
#include <ostream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "rapt/multi_head_attention.h"
#include "support/allocations.h"
#include "support/every_instruction_set.h"
#include "support/module_case.h"
#include "support/part_call.h"

namespace rapt::test {
namespace {

constexpr std::int64_t kLongest = 330;  // more than a chunk of keys

MultiHeadAttentionConfig config_of_layer() {
  MultiHeadAttentionConfig config;
  config.embed_size = 24, config.heads = 4, config.kv_heads = 2, config.head_size = 12, config.batch_first = true;
  config.rotary = RotaryOptions{.max_positions = 100};  // some positions are beyond the table
  return config;
}

KvCacheConfig cache_config(std::int64_t page_size, DType dtype = DType::f32) {
  KvCacheConfig config{.kv_heads = 2, .head_size = 12, .dtype = dtype, .sequences = 4};
  config.page_size = page_size;
  if (page_size > 0) {
    config.pages = 4 * (kLongest / page_size + 1);
  } else {
    config.length = kLongest;
  }
  return config;
}

KvCache cache_with(const KvCacheConfig& config, int sequences) {
  KvCache cache(config);
  for (int n = 0; n < sequences; ++n) cache.add();
  return cache;
}

Tensor tokens(const Dims& shape) { return drawn("tokens", shape).to(DType::f32); }

// The output of the call split into chunks of the given lengths, which run one after the other through the cache.
Tensor in_pieces(const MultiHeadAttention& layer, const ConstTensorView& x, KvCache& cache,
                 const std::vector<std::int64_t>& lengths, LayerOptions options) {
  Tensor all({x.size(0), x.size(1), layer.config().output_size});
  LayerWorkspace workspace;
  options.cache = &cache;
  options.workspace = &workspace;
  std::int64_t begin = 0;
  for (const std::int64_t length : lengths) {
    const std::int64_t end = std::min(begin + length, x.size(1));
    layer.forward({all.view().slice(1, begin, end)}, x.slice(1, begin, end), {}, {}, options);
    begin = end;
  }
  return all;
}

std::vector<std::int64_t> singles(std::int64_t count) {
  return std::vector<std::int64_t>(static_cast<std::size_t>(count), 1);
}

class LayerWithCache : public EveryInstructionSet {};
RAPT_ON_EVERY_INSTRUCTION_SET(LayerWithCache);

TEST_P(LayerWithCache, TokenByTokenHasTheBitsOfOneCausalPass) {
  const MultiHeadAttention layer(config_of_layer(), 1);
  const Tensor x = tokens({2, 300, 24});
  LayerOptions options = {.attention = {.causal = true}};
  const Tensor whole = layer.forward(x, options).out;
  for (const std::int64_t page_size : {0, 16, 64}) {
    KvCache cache = cache_with(cache_config(page_size), 2);
    EXPECT_TRUE(same_bits(in_pieces(layer, x, cache, singles(300), options), whole)) << "pages of " << page_size;
    KvCache again = cache_with(cache_config(page_size), 2);
    EXPECT_TRUE(same_bits(in_pieces(layer, x, again, {100, 1, 1, 57, 9, 132}, options), whole));
  }
}

TEST_P(LayerWithCache, TokenByTokenHasTheBitsOfOnePassInEveryType) {
  const MultiHeadAttention layer(config_of_layer(), 1);
  const Tensor x = tokens({2, 280, 24});
  LayerOptions options = {.attention = {.causal = true}};
  for (const DType dtype : {DType::bf16, DType::f16, DType::i8}) {
    for (const std::int64_t page_size : {0, 32}) {
      KvCache one_pass = cache_with(cache_config(page_size, dtype), 2), in_steps = cache_with(one_pass.config(), 2);
      const Tensor whole = in_pieces(layer, x, one_pass, {280}, options);
      for (const int threads : {1, 2, 7}) {
        options.attention.threads = threads;
        KvCache cache = cache_with(one_pass.config(), 2);
        EXPECT_TRUE(same_bits(in_pieces(layer, x, cache, {200, 1, 1, 1, 1, 76}, options), whole)) << name_of(dtype);
      }
      EXPECT_TRUE(same_bits(in_pieces(layer, x, in_steps, singles(280), options), whole)) << name_of(dtype);
    }
  }
}

TEST_P(LayerWithCache, WindowSoftcapAndSlopesToo) {
  const MultiHeadAttention layer(config_of_layer(), 1);
  const Tensor x = tokens({1, 300, 24});
  LayerOptions options = {.attention = {.causal = true}};
  options.attention.window.left = 70;
  options.attention.softcap = 2.0;
  options.attention.alibi_slopes = {0.5, 0.25, 0.1, 0.05};
  for (const std::int64_t first : {0, 4}) {
    options.attention.window.first = first;
    const Tensor whole = layer.forward(x, options).out;
    for (const std::int64_t page_size : {0, 16}) {
      KvCache cache = cache_with(cache_config(page_size), 1);
      EXPECT_TRUE(same_bits(in_pieces(layer, x, cache, singles(300), options), whole)) << first << " first keys";
    }
  }
}

TEST(CachedLayer, SequencesOfDifferentLengthShareABatch) {
  const MultiHeadAttention layer(config_of_layer(), 1);
  const Tensor x = tokens({3, 60, 24});
  LayerOptions options = {.attention = {.causal = true}};
  const std::vector<std::int64_t> begun = {5, 40, 0};
  for (const std::int64_t page_size : {0, 16}) {
    KvCache cache = cache_with(cache_config(page_size), 4);
    const std::vector<std::int64_t> ids = {3, 0, 2};  // not in order
    options.cache = &cache;
    for (std::size_t b = 0; b < ids.size(); ++b) {
      const auto row = static_cast<std::int64_t>(b);
      if (begun[b] == 0) continue;
      options.sequences = std::span(ids).subspan(b, 1);
      layer.forward(x.view().slice(0, row, row + 1).slice(1, 0, begun[b]), options);
    }
    // Each row continues from its position, with its next five tokens, or fewer.
    Tensor next({3, 5, 24});
    const std::vector<std::int64_t> counts = {5, 2, 4};
    for (std::size_t b = 0; b < ids.size(); ++b) {
      const auto row = static_cast<std::int64_t>(b);
      copy(x.view().select(0, row).slice(0, begun[b], begun[b] + 5), next.view().select(0, row));
    }
    options.sequences = ids;
    options.attention.key_lengths = counts;
    const Tensor out = layer.forward(next, options).out;
    options.attention.key_lengths.clear();
    for (std::size_t b = 0; b < ids.size(); ++b) {
      const auto row = static_cast<std::int64_t>(b);
      EXPECT_EQ(cache.length(ids[b]), begun[b] + counts[b]);
      const ConstTensorView alone = x.view().slice(0, row, row + 1).slice(1, 0, begun[b] + counts[b]);
      const Tensor whole = layer.forward(alone, {.attention = {.causal = true}}).out;
      EXPECT_TRUE(same_bits(out.view().slice(0, row, row + 1).slice(1, 0, counts[b]),
                            whole.view().slice(1, begun[b], begun[b] + counts[b])))
          << "row " << b;
    }
  }
}

TEST(CachedLayer, ASharedBeginningIsComputedOnce) {
  const MultiHeadAttention layer(config_of_layer(), 1);
  const Tensor x = tokens({2, 50, 24});
  const LayerOptions causal = {.attention = {.causal = true}};
  KvCache cache = cache_with(cache_config(16), 1);
  LayerOptions options = causal;
  options.cache = &cache;
  layer.forward(x.view().slice(0, 0, 1).slice(1, 0, 37), options);
  const std::vector<std::int64_t> ids = {0, cache.fork(0)};
  options.sequences = ids;
  const Tensor out = layer.forward(x.view().slice(1, 37, 50), options).out;  // the rows differ from here on
  for (std::int64_t b = 0; b < 2; ++b) {
    Tensor whole_row({1, 50, 24});
    copy(x.view().select(0, 0).slice(0, 0, 37), whole_row.view().select(0, 0).slice(0, 0, 37));
    copy(x.view().select(0, b).slice(0, 37, 50), whole_row.view().select(0, 0).slice(0, 37, 50));
    const Tensor whole = layer.forward(whole_row, causal).out;
    EXPECT_TRUE(same_bits(out.view().select(0, b), whole.view().select(0, 0).slice(0, 37, 50)));
  }
}

TEST(CachedLayer, WeightsAndMasksCoverTheCachedKeysToo) {
  const MultiHeadAttention layer(config_of_layer(), 1);
  const Tensor x = tokens({2, 40, 24}), bias = drawn("bias", {40, 40}).to(DType::f32);
  for (const std::int64_t page_size : {0, 16}) {
    for (const ReturnWeights kind : {ReturnWeights::mean, ReturnWeights::per_head}) {
      KvCache cache = cache_with(cache_config(page_size), 2);
      LayerOptions options = {.attention = {.causal = true}, .weights = kind};
      options.attention.masks = {Mask::add(bias)};
      const LayerResult whole = layer.forward(x, options);
      options.attention.masks = {Mask::add(bias.view().slice(0, 0, 30).slice(1, 0, 30))};
      options.cache = &cache;
      layer.forward(x.view().slice(1, 0, 30), options);
      options.attention.masks = {Mask::add(bias.view().slice(0, 30, 40))};
      const LayerResult rest = layer.forward(x.view().slice(1, 30, 40), options);
      const int queries = kind == ReturnWeights::mean ? 1 : 2;
      EXPECT_TRUE(same_bits(rest.out, whole.out.view().slice(1, 30, 40)));
      EXPECT_TRUE(same_bits(rest.weights, whole.weights.view().slice(queries, 30, 40)));
    }
  }
}

TEST(CachedLayer, WithoutBatchDimensionItIsSequenceZero) {
  const MultiHeadAttention layer(config_of_layer(), 1);
  const Tensor x = tokens({20, 24});
  KvCache cache = cache_with(cache_config(16), 1);
  LayerOptions options = {.attention = {.causal = true}};
  const Tensor whole = layer.forward(x, options).out;
  options.cache = &cache;
  layer.forward(x.view().slice(0, 0, 13), options);
  EXPECT_TRUE(same_bits(layer.forward(x.view().slice(0, 13, 20), options).out, whole.view().slice(0, 13, 20)));
}

TEST(CachedLayer, ASteadyLoopTakesNothingFromTheHeap) {
  const MultiHeadAttention layer(config_of_layer(), 1);
  const Tensor x = tokens({2, 1, 24});
  for (const std::int64_t page_size : {0, 16}) {
    for (const DType dtype : {DType::f32, DType::bf16, DType::i8}) {
      for (const int threads : {1, 2}) {
        KvCache cache = cache_with(cache_config(page_size, dtype), 2);
        Tensor out({2, 1, 24});
        LayerWorkspace workspace;
        LayerOptions options = {
            .attention = {.causal = true, .threads = threads}, .cache = &cache, .workspace = &workspace};
        const std::vector<std::int64_t> ids = {0, 1};
        options.sequences = ids;
        const auto step = [&] { layer.forward({out, {}}, x, {}, {}, options); };
        // First runs to the full length, so that every list has its capacity; then again from the beginning.
        for (std::int64_t n = 0; n < kLongest; ++n) step();
        for (const std::int64_t id : ids) cache.truncate(id, 0);
        const std::int64_t before = allocation_count();
        for (std::int64_t n = 0; n < kLongest; ++n) step();
        EXPECT_EQ(kCountsAllocations ? allocation_count() : before, before) << page_size << " " << name_of(dtype);
      }
    }
  }
}

// ---- Refusals -------------------------------------------------------------------------------------------------------

struct BadCachedCall {
  const char* name;
  std::function<void(MultiHeadAttentionConfig&, KvCacheConfig&, LayerOptions&)> spoil;
  const char* message;
};

void PrintTo(const BadCachedCall& bad, std::ostream* stream) { *stream << bad.name; }

using Layer = MultiHeadAttentionConfig;
using Cache = KvCacheConfig;
using Options = LayerOptions;
const std::vector<std::int64_t> kOneId = {0}, kAbsent = {0, 3}, kTwice = {1, 1};
const Tensor kBadMask({7, 7});

// clang-format off
const std::vector<BadCachedCall> kBadCachedCalls = {
    {"KvHeads", [](Layer&, Cache& c, Options&) { c.kv_heads = 4; }, "MultiHeadAttention::forward: the cache has 4 kv heads, the layer has 2; they must be equal"},
    {"HeadSize", [](Layer&, Cache& c, Options&) { c.head_size = 8; }, "MultiHeadAttention::forward: the cache has head size 8, the layer has 12; they must be equal"},
    {"ValueSize", [](Layer&, Cache& c, Options&) { c.value_size = 8; }, "MultiHeadAttention::forward: the cache has value size 8, the layer has 12; they must be equal"},
    {"AddedKeys", [](Layer& l, Cache&, Options&) { l.add_bias_kv = true; }, "MultiHeadAttention::forward: a cache cannot be combined with add_bias_kv or add_zero_attention"},
    {"Packed", [](Layer&, Cache&, Options& o) { o.attention.packed = {{0, 4}, {0, 4}}; }, "MultiHeadAttention::forward: a cache cannot be combined with attention.packed"},
    {"Position", [](Layer&, Cache&, Options& o) { o.position = 3; }, "MultiHeadAttention::forward: position is 3; with a cache, it follows from the cached tokens"},
    {"Alignment", [](Layer&, Cache&, Options& o) { o.attention.alignment = Alignment::top_left(); }, "MultiHeadAttention::forward: attention.alignment is given; with a cache, query 0 follows the cached tokens"},
    {"Pages", [](Layer&, Cache&, Options& o) { o.attention.pages.per_row = 1; }, "MultiHeadAttention::forward: attention.pages and scales belong to a cache; pass the cache to the layer instead"},
    {"OneSequenceForTwoRows", [](Layer&, Cache&, Options& o) { o.sequences = kOneId; }, "MultiHeadAttention::forward: sequences has 1 ids for 2 batch rows; give one for each"},
    {"LengthsForOneRow", [](Layer&, Cache&, Options& o) { o.attention.key_lengths = {4}; }, "MultiHeadAttention::forward: attention.key_lengths has 1 values for 2 batch rows; give one for each"},
    {"LengthBeyondTheCall", [](Layer&, Cache&, Options& o) { o.attention.key_lengths = {4, 5}; }, "MultiHeadAttention::forward: attention.key_lengths[1] is 5; this call has 4 tokens in each row"},
    {"BeyondTheStoredMask", [](Layer& l, Cache&, Options&) { l.context_length = 7; }, "MultiHeadAttention::forward: with this call a sequence has 8 tokens, the stored causal mask is for 7; shorten the sequence, or make the layer with a larger context_length"},
    {"AbsentSequence", [](Layer&, Cache&, Options& o) { o.sequences = kAbsent; }, "KvCache::length: "},
    {"SequenceTwice", [](Layer&, Cache&, Options& o) { o.sequences = kTwice; }, "KvCache::append: "},
    {"FullPages", [](Layer&, Cache& c, Options&) { c.page_size = 16, c.pages = 1; }, "KvCache::append: "},
    {"FullLength", [](Layer&, Cache& c, Options&) { c.length = 6; }, "KvCache::append: "},
    {"MaskOfAnotherShape", [](Layer&, Cache&, Options& o) { o.attention.masks = {Mask::add(kBadMask)}; }, "MultiHeadAttention::forward: masks[0] has shape (7, 7)"},
};
// clang-format on

class BadForwardWithCache : public testing::TestWithParam<BadCachedCall> {};
INSTANTIATE_TEST_SUITE_P(Calls, BadForwardWithCache, testing::ValuesIn(kBadCachedCalls),
                         [](const auto& instance) { return std::string(instance.param.name); });

TEST_P(BadForwardWithCache, IsRefusedAndChangesNothing) {
  Layer layer_config = config_of_layer();
  Cache cache_settings{.kv_heads = 2, .head_size = 12, .sequences = 4, .length = 40};
  LayerOptions options;
  GetParam().spoil(layer_config, cache_settings, options);
  const MultiHeadAttention layer(layer_config, 1);
  KvCache cache = cache_with(cache_settings, 2);
  // Sequence 0 already has four tokens.
  const Tensor k({1, cache_settings.kv_heads, 4, cache_settings.head_size});
  const Tensor v({1, cache_settings.kv_heads, 4, cache.config().value_size});
  cache.append(kOneId, k, v);
  const Tensor x = tokens({2, 4, 24});
  Tensor out({2, 4, 24});
  for (float& value : out.values<float>()) value = 7.0F;
  options.cache = &cache;
  try {
    layer.forward({out, {}}, x, {}, {}, options);
    FAIL() << "was not refused";
  } catch (const Error& error) {
    EXPECT_EQ(std::string(error.what()).substr(0, std::string(GetParam().message).size()), GetParam().message);
  }
  EXPECT_EQ(cache.length(0), 4);
  EXPECT_EQ(cache.length(1), 0);
  for (const float value : out.values<float>()) ASSERT_EQ(value, 7.0F) << "something was written";
}

TEST(CachedLayer, IsForSelfAttentionOnly) {
  const MultiHeadAttention layer(config_of_layer(), 1);
  KvCache cache = cache_with(cache_config(0), 2);
  const Tensor x = tokens({2, 4, 24}), memory = tokens({2, 6, 24});
  EXPECT_THROW(layer.forward(x, memory, memory, {.cache = &cache}), Error);
  EXPECT_EQ(cache.length(0), 0);
}

}  // namespace
}  // namespace rapt::test
