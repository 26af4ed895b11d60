// A decode loop with the caller's workspace allocates nothing on the heap once it is running.
#include <algorithm>
#include <array>
#include <cstdlib>
#include <functional>
#include <new>
#include <vector>

#include <gtest/gtest.h>

#include "rapt/attention.h"
#include "support/allocations.h"

namespace rapt::test {
namespace {

constexpr std::int64_t kHeads = 8, kKvHeads = 2, kSize = 64, kCapacity = 1100;

// One sequence that grows token by token. Everything that a program would keep between tokens is created once.
class Loop {
 public:
  Loop(DType query_type, DType kv_type, int threads)
      : query_({1, kHeads, 1, kSize}, query_type),
        out_({1, kHeads, 1, kSize}, query_type),
        key_({1, kKvHeads, kCapacity, kSize}, kv_type),
        value_({1, kKvHeads, kCapacity, kSize}, kv_type) {
    options.causal = true;
    options.alignment = Alignment::bottom_right();
    options.threads = threads;
    outputs.out = out_, outputs.lse = lse_;
  }

  // Attends to the first `length` keys of the cache, as a slice.
  void decode(std::int64_t length) const {
    attention(outputs, query_, key_.view().slice(2, 0, length), value_.view().slice(2, 0, length), options);
  }
  // Attends to the same keys by a key length on the whole cache.
  void decode_by_length(std::int64_t length) {
    options.key_lengths[0] = length;
    attention(outputs, query_, key_, value_, options);
  }

  // A workspace that is large enough for every call of the loop.
  void reserve() {
    std::size_t most = 0;
    for (std::int64_t length = 1; length <= kCapacity; ++length) {
      const bool by_length = !options.key_lengths.empty();
      if (by_length) options.key_lengths[0] = length;
      const std::int64_t keys = by_length ? kCapacity : length;
      most = std::max(most, attention_workspace_bytes(outputs, query_, key_.view().slice(2, 0, keys),
                                                      value_.view().slice(2, 0, keys), options));
    }
    workspace_.resize(most);
    options.workspace = workspace_;
  }

  const Tensor& sinks() const { return sinks_; }
  const Tensor& mask() const { return mask_; }
  Tensor& weights() { return weights_; }

  AttentionOptions options;
  AttentionOutputs outputs;

 private:
  Tensor query_, out_, key_, value_;
  Tensor lse_{{1, kHeads, 1}};
  Tensor sinks_{{kHeads}};
  Tensor mask_{{1, 1, 1, kCapacity}};
  Tensor weights_{{1, 1, kCapacity}};
  std::vector<std::byte> workspace_;
};

// Counts allocations for 500 to 530 and for 1000 to 1030 keys: both ranges cross the edge of a chunk (512 and 1024).
template <class Decode>
std::int64_t allocations_of(const Decode& decode) {
  for (const std::int64_t length : {500, 530, 1030}) decode(length);  // threads start on first use
  const std::int64_t before = allocation_count();
  for (std::int64_t length = 500; length <= 530; ++length) decode(length);
  for (std::int64_t length = 1000; length <= 1030; ++length) decode(length);
  return allocation_count() - before;
}

class DecodeLoop : public testing::TestWithParam<int> {
 protected:
  void SetUp() override {
    if (!kCountsAllocations) GTEST_SKIP() << "allocations are not counted here";
  }
};
INSTANTIATE_TEST_SUITE_P(Threads, DecodeLoop, testing::Values(1, 2, 7));

TEST_P(DecodeLoop, AllocatesNothingInAnyType) {
  constexpr std::array<std::pair<DType, DType>, 5> kTypes{{{DType::f32, DType::f32},
                                                           {DType::bf16, DType::bf16},
                                                           {DType::f16, DType::f16},
                                                           {DType::f32, DType::bf16},
                                                           {DType::f32, DType::f16}}};
  for (const auto& [query_type, kv_type] : kTypes) {
    Loop loop(query_type, kv_type, GetParam());
    loop.reserve();
    EXPECT_EQ(allocations_of([&](std::int64_t length) { loop.decode(length); }), 0)
        << name_of(query_type) << " on " << name_of(kv_type);
  }
}

TEST_P(DecodeLoop, AllocatesNothingWithKeyLengths) {
  Loop loop(DType::f32, DType::f32, GetParam());
  loop.options.key_lengths = {kCapacity};
  loop.reserve();
  EXPECT_EQ(allocations_of([&](std::int64_t length) { loop.decode_by_length(length); }), 0);
}

TEST_P(DecodeLoop, AllocatesNothingWithAWindowSoftcapAndDropout) {
  Loop loop(DType::f32, DType::f32, GetParam());
  loop.options.window.left = 400, loop.options.softcap = 20.0, loop.options.dropout.rate = 0.1;
  loop.reserve();
  EXPECT_EQ(allocations_of([&](std::int64_t length) { loop.decode(length); }), 0);
}

TEST_P(DecodeLoop, AllocatesNothingWithAlibiAndSinks) {
  Loop loop(DType::f32, DType::f32, GetParam());
  loop.options.alibi_slopes.assign(kHeads, 0.25);
  loop.options.sinks = loop.sinks();
  loop.reserve();
  EXPECT_EQ(allocations_of([&](std::int64_t length) { loop.decode(length); }), 0);
}

TEST_P(DecodeLoop, AllocatesNothingWithAMaskAndMeanWeights) {
  Loop loop(DType::f32, DType::f32, GetParam());
  loop.options.masks = {Mask::add(loop.mask())};
  loop.options.key_lengths = {kCapacity};
  loop.outputs.captures = {{.to = loop.weights(), .of = {.mean_over_heads = true}}};
  loop.reserve();
  EXPECT_EQ(allocations_of([&](std::int64_t length) { loop.decode_by_length(length); }), 0);
}

// The cache is in pages of 32 keys in reverse order, in every type including i8.
TEST_P(DecodeLoop, AllocatesNothingWithPagesInAnyType) {
  for (const DType storage : {DType::f32, DType::bf16, DType::f16, DType::i8}) {
    const Tensor query({2, kHeads, 1, kSize}), pages({70, kKvHeads, 32, kSize}, storage), scales({70, kKvHeads, 32});
    Tensor out({2, kHeads, 1, kSize});
    std::vector<std::int32_t> table;
    for (std::int32_t page = 70; page > 0; --page) table.push_back(page - 1);
    AttentionOptions options{.causal = true, .alignment = Alignment::bottom_right(), .key_lengths = {1100, 7}};
    options.pages = {table, 35}, options.threads = GetParam();
    if (storage == DType::i8) options.key_scales = options.value_scales = scales;
    const AttentionOutputs outputs{.out = out};
    std::vector<std::byte> workspace(attention_workspace_bytes(outputs, query, pages, pages, options));
    options.workspace = workspace;
    EXPECT_EQ(allocations_of([&](std::int64_t length) {
                options.key_lengths[0] = length;
                attention(outputs, query, pages, pages, options);
              }),
              0)
        << name_of(storage);
  }
}

// A whole prompt, whose weights are kept in the workspace until their mean is known.
TEST_P(DecodeLoop, AllocatesNothingForAPromptWithMeanWeights) {
  constexpr std::int64_t kQueries = 200;
  const Tensor query({1, kHeads, kQueries, kSize}), key({1, kKvHeads, kQueries, kSize});
  Tensor out({1, kHeads, kQueries, kSize}), mean({1, kQueries, kQueries});
  const AttentionOutputs outputs{.out = out, .captures = {{.to = mean, .of = {.mean_over_heads = true}}}};
  AttentionOptions options;
  options.causal = true, options.threads = GetParam();
  std::vector<std::byte> workspace(attention_workspace_bytes(outputs, query, key, key, options));
  options.workspace = workspace;
  attention(outputs, query, key, key, options);  // threads start on first use
  const std::int64_t before = allocation_count();
  attention(outputs, query, key, key, options);
  EXPECT_EQ(allocation_count() - before, 0);
}

// Backward with a causal mask, softcap, sinks, a float mask and dropout, in every type, with and without forward's
// results.
TEST_P(DecodeLoop, AllocatesNothingInBackward) {
  constexpr std::int64_t kQueries = 300;
  for (const DType type : {DType::f32, DType::bf16, DType::f16}) {
    for (const bool reuse : {false, true}) {
      const Dims many{1, kHeads, kQueries, kSize}, few{1, kKvHeads, kQueries, kSize}, rows{1, kHeads, kQueries};
      const Tensor query(many, type), key(few, type), dout(many, type), dlse(rows), sinks({kHeads});
      const Tensor bias({1, kHeads, kQueries, kQueries}), dmean({1, kQueries, kQueries});
      Tensor out(many, type), lse(rows), dquery(many, type), dkey(few, type), dvalue(few, type), dsinks({kHeads});
      Tensor dbias({1, kHeads, kQueries, kQueries});
      AttentionOptions options;
      options.causal = true, options.threads = GetParam(), options.softcap = 5.0, options.sinks = sinks;
      options.masks = {Mask::add(bias)}, options.dropout.rate = 0.1;
      AttentionUpstream upstream{.dout = dout, .dlse = dlse};
      if (reuse) {
        attention({.out = out, .lse = lse}, query, key, key, options);
        upstream.out = out, upstream.lse = lse;
      } else {
        upstream.dweights = {{.from = dmean, .of = {.mean_over_heads = true}}};
      }
      const AttentionGradients gradients{
          .dquery = dquery, .dkey = dkey, .dvalue = dvalue, .dsinks = dsinks, .dmasks = {{0, dbias}}};
      std::vector<std::byte> workspace(
          attention_backward_workspace_bytes(gradients, upstream, query, key, key, options));
      options.workspace = workspace;
      attention_backward(gradients, upstream, query, key, key, options);  // threads start on first use
      const std::int64_t before = allocation_count();
      attention_backward(gradients, upstream, query, key, key, options);
      EXPECT_EQ(allocation_count() - before, 0) << name_of(type) << (reuse ? " with forward's results" : "");
    }
  }
}

// Checks the counter itself, on which the tests above depend.
TEST(AllocationCounter, CountsEveryWayToTheHeap) {
  if (!kCountsAllocations) GTEST_SKIP() << "allocations are not counted here";
  const auto counted = [](const std::function<void*()>& allocate, const std::function<void(void*)>& release) {
    const std::int64_t before = allocation_count();
    void* memory = allocate();
    const std::int64_t after = allocation_count();
    release(memory);
    return after - before;
  };
  const auto free_it = [](void* memory) { std::free(memory); };
  EXPECT_EQ(counted([] { return std::malloc(100); }, free_it), 1);
  EXPECT_EQ(counted([] { return std::calloc(10, 10); }, free_it), 1);
  EXPECT_EQ(counted([] { return std::aligned_alloc(64, 128); }, free_it), 1);
  EXPECT_EQ(counted([] { return ::operator new(100); }, [](void* memory) { ::operator delete(memory); }), 1);
  EXPECT_EQ(counted([] { return ::operator new (100, std::align_val_t{64}); },
                    [](void* memory) { ::operator delete (memory, std::align_val_t{64}); }),
            1);
  EXPECT_EQ(counted([]() -> void* { return nullptr; }, free_it), 0);
}

// Checks that a call that allocates is detected: without the caller's workspace it must allocate.
TEST(AllocationCounter, SeesACallThatBringsItsOwnWorkspace) {
  if (!kCountsAllocations) GTEST_SKIP() << "allocations are not counted here";
  const Loop loop(DType::f32, DType::f32, 1);
  EXPECT_GE(allocations_of([&](std::int64_t length) { loop.decode(length); }), 62);
}

}  // namespace
}  // namespace rapt::test
