// Results through C have the same bits as the C++ call: attention and its gradients on every case, and the cache.
#include "support/same_bits.h"

#include <cstring>
#include <deque>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "cases/list.h"
#include "rapt/rapt.h"
#include "support/c_arguments.h"
#include "support/module_case.h"

namespace rapt::test {
namespace {

using cases::Case;
using cases::CaseSpec;

#define EXPECT_GOOD(call) EXPECT_EQ(call, RAPT_OK) << rapt_last_error()
#define ASSERT_GOOD(call) ASSERT_EQ(call, RAPT_OK) << rapt_last_error()

// Two sets of output tensors, for the C++ call and for the C call, with the same shapes and filled with NaN.
class Twice {
 public:
  TensorView cpp(const Dims& shape, DType dtype) { return added(first_, shape, dtype); }
  TensorView c(const Dims& shape, DType dtype) { return added(second_, shape, dtype); }
  void expect_same() const {
    ASSERT_EQ(first_.size(), second_.size());
    for (std::size_t n = 0; n < first_.size(); ++n) EXPECT_TRUE(same_bits(first_[n], second_[n])) << "tensor " << n;
  }

 private:
  static TensorView added(std::deque<Tensor>& list, const Dims& shape, DType dtype) {
    Tensor& tensor = list.emplace_back(shape, dtype);
    if (tensor.count() > 0)
      std::memset(tensor.view().data(), 0xFF, static_cast<std::size_t>(tensor.count()) * size_of(dtype));
    return tensor;
  }
  std::deque<Tensor> first_, second_;
};

DType sums_of(const CaseSpec& spec) { return spec.query_type == DType::f64 ? DType::f64 : DType::f32; }

template <class Make>
AttentionOutputs outputs_of(const CaseSpec& spec, const Make& make) {
  AttentionOutputs outputs;
  outputs.out = make(Dims{spec.batch, spec.query_heads, spec.queries, spec.value_size}, spec.query_type);
  if (spec.lse) outputs.lse = make(Dims{spec.batch, spec.query_heads, spec.queries}, sums_of(spec));
  for (const auto& [stage, of] : spec.captures) {
    outputs.captures.push_back({stage, make(cases::capture_shape(spec, of), spec.type_of(stage)), of});
  }
  return outputs;
}

TEST(AttentionInC, HasTheBitsOfCppOnEveryCase) {
  for (const CaseSpec& spec : cases::all_cases()) {
    SCOPED_TRACE(spec.name);
    const Case test(spec);
    Twice twice;
    attention(outputs_of(spec, [&](const Dims& shape, DType dtype) { return twice.cpp(shape, dtype); }), test.query,
              test.key, test.value, test.options);
    const AttentionOutputs outputs =
        outputs_of(spec, [&](const Dims& shape, DType dtype) { return twice.c(shape, dtype); });
    CArguments c;
    EXPECT_GOOD(rapt_attention(c.outputs(outputs), c.tensor(test.query), c.tensor(test.key), c.tensor(test.value),
                               c.options(test.options)));
    twice.expect_same();
  }
}

template <class Make>
AttentionGradients gradients_of(const Case& test, const Make& make) {
  AttentionGradients gradients;
  gradients.dquery = make(test.query.shape(), test.query.dtype());
  gradients.dkey = make(test.key.shape(), test.key.dtype());
  gradients.dvalue = make(test.value.shape(), test.value.dtype());
  const AttentionOptions& options = test.options;
  if (options.sinks.defined()) gradients.dsinks = make(options.sinks.shape(), options.sinks.dtype());
  for (std::size_t n = 0; n < options.masks.size(); ++n) {
    const Mask& mask = options.masks[n];
    if (mask.kind == Mask::Kind::add) gradients.dmasks.push_back({n, make(mask.view.shape(), mask.view.dtype())});
  }
  return gradients;
}

TEST(GradientsInC, HaveTheBitsOfCppOnEveryCase) {
  for (const CaseSpec& spec : cases::all_cases()) {
    if (!cases::has_backward(spec)) continue;
    SCOPED_TRACE(spec.name);
    const Case test(spec);
    std::deque<Tensor> arriving;
    const auto drawn_as = [&](const Dims& shape, DType dtype) {
      return arriving.emplace_back(drawn("upstream", shape).to(dtype)).view();
    };
    const Dims rows{spec.batch, spec.query_heads, spec.queries};
    AttentionUpstream upstream{.dout = drawn_as({rows[0], rows[1], rows[2], spec.value_size}, spec.query_type)};
    if (spec.lse) upstream.dlse = drawn_as(rows, sums_of(spec));
    for (const auto& [stage, of] : spec.captures) {
      if (stage != Stage::weights && stage != Stage::dropped_weights) continue;
      upstream.dweights.push_back({stage, drawn_as(cases::capture_shape(spec, of), spec.type_of(stage)), of});
    }
    Tensor out({rows[0], rows[1], rows[2], spec.value_size}, spec.query_type), lse(rows, sums_of(spec));
    attention({.out = out, .lse = lse}, test.query, test.key, test.value, test.options);
    if (spec.seed % 2 == 0) upstream.out = out, upstream.lse = lse;

    Twice twice;
    attention_backward(gradients_of(test, [&](const Dims& shape, DType dtype) { return twice.cpp(shape, dtype); }),
                       upstream, test.query, test.key, test.value, test.options);
    const AttentionGradients gradients =
        gradients_of(test, [&](const Dims& shape, DType dtype) { return twice.c(shape, dtype); });
    CArguments c;
    EXPECT_GOOD(rapt_attention_backward(c.gradients(gradients), c.upstream(upstream), c.tensor(test.query),
                                        c.tensor(test.key), c.tensor(test.value), c.options(test.options)));
    twice.expect_same();
  }
}

// Options that no case covers: engine, threads, thread pool and workspace.
TEST(AttentionInC, TakesItsEnginePoolAndWorkspaceFromTheOptions) {
  const Tensor q = drawn("q", {1, 2, 70, 16}).to(DType::f32), k = drawn("k", {1, 2, 300, 16}).to(DType::f32);
  Tensor out({1, 2, 70, 16});
  CArguments c;
  AttentionOptions options{.engine = Engine::reference};
  const Tensor by_reference = attention(q, k, k, options);
  const rapt_attention_outputs* outputs = c.outputs(AttentionOutputs{.out = out});
  ASSERT_GOOD(rapt_attention(outputs, c.tensor(q), c.tensor(k), c.tensor(k), c.options(options)));
  EXPECT_TRUE(same_bits(out, by_reference));

  std::int64_t tasks = 0;
  options = {.threads = 3, .parallel_for = [&](std::int64_t count, const Task& task) {
               for (std::int64_t n = count; n > 0; --n, ++tasks) task(n - 1);
             }};
  const rapt_attention_options* in_c = c.options(options);
  std::size_t bytes = 0;
  ASSERT_GOOD(rapt_attention_workspace_bytes(&bytes, outputs, c.tensor(q), c.tensor(k), c.tensor(k), in_c));
  EXPECT_EQ(bytes, attention_workspace_bytes({.out = out}, q, k, k, options));
  std::vector<std::byte> workspace(bytes);
  options.workspace = workspace;
  ASSERT_GOOD(rapt_attention(outputs, c.tensor(q), c.tensor(k), c.tensor(k), c.options(options)));
  EXPECT_TRUE(same_bits(out, attention(q, k, k)));
  EXPECT_GT(tasks, 0);

  options.workspace = std::span(workspace).first(bytes - 1);
  EXPECT_EQ(rapt_attention(outputs, c.tensor(q), c.tensor(k), c.tensor(k), c.options(options)), RAPT_BAD_ARGUMENT);
}

// Pages with a capacity above Lk, and a tensor with a byte offset.
TEST(AttentionInC, TakesTheNumberOfKeysInPagesAndTheOffsetOfATensor) {
  const Tensor q = drawn("q", {1, 2, 3, 8}).to(DType::f32), pages = drawn("pages", {2, 2, 16, 8}).to(DType::f32);
  const Tensor bias = drawn("bias", {3, 20}).to(DType::f32);
  const std::vector<std::int32_t> table = {1, 0};
  AttentionOptions options{.masks = {Mask::add(bias)}, .key_lengths = {20}, .pages = {table, 2, 20}};
  Tensor out({1, 2, 3, 8});
  CArguments c;
  DLTensor query = *c.tensor(q);
  query.data = static_cast<std::byte*>(query.data) - 64, query.byte_offset = 64;
  ASSERT_GOOD(rapt_attention(c.outputs(AttentionOutputs{.out = out}), &query, c.tensor(pages), c.tensor(pages),
                             c.options(options)));
  EXPECT_TRUE(same_bits(out, attention(q, pages, pages, options)));
}

// ---------------------------------------------------------------- the cache

TEST(CacheInC, DecodesWithTheBitsOfCpp) {
  for (const DType dtype : {DType::f32, DType::i8}) {
    KvCache cpp(
        {.kv_heads = 2, .head_size = 8, .value_size = 6, .dtype = dtype, .sequences = 3, .page_size = 16, .pages = 9});
    rapt_kv_cache_config config;
    rapt_kv_cache_config_init(&config, sizeof config);
    config.kv_heads = 2, config.head_size = 8, config.value_size = 6, config.dtype = static_cast<int>(dtype);
    config.sequences = 3, config.page_size = 16, config.pages = 9;
    rapt_kv_cache* cache = nullptr;
    ASSERT_GOOD(rapt_kv_cache_create(&cache, &config));
    std::int64_t ids[2];
    for (std::int64_t& id : ids) {
      ASSERT_GOOD(rapt_kv_cache_add(cache, &id));
      EXPECT_EQ(id, cpp.add());
    }
    const Tensor k = drawn("k", {2, 2, 20, 8}).to(DType::f32), v = drawn("v", {2, 2, 20, 6}).to(DType::f32);
    const std::int64_t counts[2] = {20, 13};
    CArguments c;
    ASSERT_GOOD(rapt_kv_cache_append(cache, ids, 2, c.tensor(k), c.tensor(v), counts));
    cpp.append(ids, k, v, counts);

    const Tensor q = drawn("q", {2, 4, 3, 8}).to(DType::f32);
    Tensor wanted({2, 4, 3, 6}), got({2, 4, 3, 6});
    AttentionOptions options{.causal = true, .alignment = Alignment::bottom_right()};
    ASSERT_GOOD(rapt_kv_cache_attention(cache, ids, 2, c.outputs(AttentionOutputs{.out = got}), c.tensor(q),
                                        c.options(options)));
    CacheView seen;
    cpp.view(ids, seen);
    seen.apply(options);
    attention({.out = wanted}, q, seen.key, seen.value, options);
    EXPECT_TRUE(same_bits(got, wanted));

    EXPECT_EQ(rapt_kv_cache_attention(cache, ids, 2, c.outputs(AttentionOutputs{.out = got}), c.tensor(q),
                                      c.options(options)),
              RAPT_BAD_ARGUMENT);
    EXPECT_EQ(std::string(rapt_last_error()),
              "rapt_kv_cache_attention: options have key_lengths, pages or scales; with a cache, the cache sets them");
    rapt_kv_cache_destroy(cache);
  }
}

}  // namespace
}  // namespace rapt::test
