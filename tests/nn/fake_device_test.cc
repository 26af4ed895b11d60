// Layers, caches and training on a device whose memory nothing but its engine may touch (support/fake_device.h): the
// same bits as on the CPU, and any access that bypasses the engine is caught.
#include "support/fake_device.h"

#include <cstdint>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "rapt/kv_cache.h"
#include "rapt/layers.h"
#include "rapt/multi_head_attention.h"
#include "rapt/npy.h"
#include "rapt/packed_matrix.h"
#include "rapt/rotary.h"
#include "rapt/safetensors.h"
#include "support/cuda/has_cuda.h"
#include "support/expect_error.h"
#include "support/random_tensor.h"

namespace rapt {
namespace {

using test::expect_error;
using test::fake_device;
using test::random;
using test::same_bits;

constexpr Device kCpu{};

Tensor on_cpu(const ConstTensorView& view) { return Tensor::copy_of(view, view.dtype(), kCpu); }
bool agree(const ConstTensorView& on_fake, const ConstTensorView& on_host) {
  return on_fake.device() == fake_device() && same_bits(on_cpu(on_fake), on_host);
}

// ---------------------------------------------------------------- memory

TEST(FakeDevice, ADirectTouchIsCaught) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const Tensor x = random({4}).to(fake_device());
  const auto* first = static_cast<const volatile float*>(x.view().data());
  EXPECT_DEATH({ std::fprintf(stderr, "%f", static_cast<double>(*first)); }, "");
  Tensor y({4}, DType::f32, fake_device());
  auto* to = static_cast<volatile float*>(y.view().data());
  EXPECT_DEATH({ *to = 1.0F; }, "");
  // Only the direct access crashes, not the same access through the engine.
  copy(x, y);
  EXPECT_TRUE(agree(y, random({4})));
}

TEST(FakeDevice, ReadersOfElementsRefuseItsMemoryInWords) {
  Tensor x({2, 2}, DType::f32, fake_device());
  const std::string message = "tensor is on fake:0; copy it to the CPU first";
  expect_error([&] { (void)x.values<float>(); }, message);
  expect_error([&] { (void)std::as_const(x).values<float>(); }, message);
  expect_error([&] { (void)x.view().at<float>(0, 0); }, message);
  expect_error([&] { (void)x.view().data_as<float>(); }, message);
  EXPECT_NE(test::refusal([&] { write_npy("/dev/null", x); }).find("copy it to the CPU first"), std::string::npos);
  EXPECT_NE(test::refusal([&] {
              write_safetensors("/dev/null", {{"x", x.view()}});
            }).find("copy it to the CPU first"),
            std::string::npos);
}

TEST(FakeDevice, MemoryOfADeviceThatNoEngineReadsIsRefusedInWords) {
  if (test::has_cuda()) GTEST_SKIP() << "this build has an engine for every kind of device";
  Tensor x({2});
  const Device gpu{Device::Kind::cuda, 1};
  const TensorView elsewhere(x.view().data(), DType::f32, {2}, gpu);
  expect_error([&] { copy(elsewhere, x); }, "copy: from is on cuda:1; no engine of this build can access that memory");
  expect_error([&] { copy(x, elsewhere); }, "copy: to is on cuda:1; no engine of this build can access that memory");
  expect_error([&] { Tensor({2}, DType::f32, gpu); },
               "tensor: memory was requested on cuda:1; no engine of this build supports that device");
}

TEST(FakeDevice, CopiesConvertAndKeepAnyStrides) {
  const Tensor x = random({3, 4, 5});
  for (const DType dtype : {DType::f32, DType::bf16, DType::f16, DType::f64}) {
    const Tensor there = Tensor::copy_of(x, dtype, fake_device());
    EXPECT_TRUE(agree(there, x.to(dtype)));
    EXPECT_TRUE(agree(there.to(DType::f32), x.to(dtype).to(DType::f32)));
    EXPECT_TRUE(same_bits(Tensor::copy_of(there.view().transpose(0, 2), DType::f32, kCpu),
                          Tensor::copy_of(x.to(dtype).view().transpose(0, 2), DType::f32)));
  }
  Tensor wide({3, 8, 5}, DType::f32, fake_device());
  copy(x, wide.view().slice(1, 2, 6));
  Tensor wide_here({3, 8, 5});
  copy(x, wide_here.view().slice(1, 2, 6));
  EXPECT_TRUE(agree(wide, wide_here));
  Tensor back({3, 4, 10});
  copy(wide.view().slice(1, 2, 6), back.view().split(2, 5).select(3, 1));
  EXPECT_TRUE(same_bits(Tensor::copy_of(back.view().split(2, 5).select(3, 1)), x));
}

TEST(FakeDevice, ATensorThatIsMadeThereIsZero) {
  { const Tensor dirty = random({100}).to(fake_device()); }
  EXPECT_TRUE(agree(Tensor({100}, DType::f32, fake_device()), Tensor({100})));
}

TEST(FakeDevice, TensorsOfTwoDevicesDoNotMix) {
  const Tensor q = random({1, 2, 3, 8}), there = q.to(fake_device());
  expect_error([&] { (void)attention(there, q, there, {}); },
               "attention: key is on cpu, this call works on fake:0; all its tensors must be on one device");
  expect_error([&] { (void)attention(q, q, there, {}); },
               "attention: value is on fake:0, this call works on cpu; all its tensors must be on one device");
  expect_error([&] { (void)attention(there, there, there, {.engine = Engine::cpu}); },
               "attention: the cpu engine reads cpu memory; the tensors are on fake:0");
  const MultiHeadAttention layer({.embed_size = 8, .heads = 2});
  const Tensor x = random({3, 1, 8}).to(fake_device());
  expect_error(
      [&] { (void)layer.forward(x); },
      "MultiHeadAttention::forward: query is on fake:0, this call works on cpu; all its tensors must be on one "
      "device");
  KvCache cache({.kv_heads = 2, .head_size = 4, .length = 8});
  cache.add();
  expect_error([&] { (void)layer.to(fake_device()).forward(x, {.cache = &cache}); },
               "MultiHeadAttention::forward: the cache is on cpu, the layer on fake:0; they must be on one device");
  expect_error([&] { Rotary(8).apply(there.clone().view()); },
               "rotary: x is on fake:0, this call works on cpu; all its tensors must be on one device");
  expect_error(
      [&] {
        PackedMatrix(random({4, 8})).multiply(random({2, 8}).to(fake_device()), Tensor({2, 4}).view());
      },
      "PackedMatrix::multiply: x is on fake:0, this call works on cpu; all its tensors must be on one device");
}

// ---------------------------------------------------------------- attention

TEST(FakeDevice, AttentionForthAndBackHasTheCpusBits) {
  const Tensor q = random({2, 4, 7, 8}, DType::f32, 1), k = random({2, 2, 9, 8}, DType::f32, 2),
               v = random({2, 2, 9, 8}, DType::f32, 3), bias = random({7, 9}, DType::f32, 4);
  const auto run = [&](Device device) {
    const Tensor query = q.to(device), key = k.to(device), value = v.to(device), mask = bias.to(device);
    AttentionOptions options;
    options.masks = {Mask::add(mask)};
    options.key_lengths = {9, 5};
    Tensor out(q.shape(), DType::f32, device), lse({2, 4, 7}, DType::f32, device);
    Tensor weights({2, 7, 9}, DType::f32, device);
    const AttentionOutputs outputs{
        .out = out, .lse = lse, .captures = {{Stage::weights, weights, {.mean_over_heads = true}}}};
    attention(outputs, query, key, value, options);
    Tensor dq(q.shape(), DType::f32, device), dk(k.shape(), DType::f32, device), dv(v.shape(), DType::f32, device);
    attention_backward({.dquery = dq, .dkey = dk, .dvalue = dv}, {.dout = out, .out = out, .lse = lse}, query, key,
                       value, options);
    std::vector<Tensor> all;
    for (Tensor* one : {&out, &lse, &weights, &dq, &dk, &dv}) all.push_back(std::move(*one));
    // The caller's workspace is memory of the device, of the size that attention_workspace_bytes returns.
    const std::size_t bytes = attention_workspace_bytes(outputs, query, key, value, options);
    Tensor workspace({static_cast<std::int64_t>(bytes)}, DType::i8, device);
    options.workspace = {static_cast<std::byte*>(workspace.view().data()), bytes};
    Tensor again(q.shape(), DType::f32, device);
    attention({.out = again}, query, key, value, options);
    all.push_back(std::move(again));
    return all;
  };
  const std::vector<Tensor> here = run(kCpu), there = run(fake_device());
  for (std::size_t n = 0; n < here.size(); ++n) EXPECT_TRUE(agree(there[n], here[n])) << n;
}

// ---------------------------------------------------------------- layers

struct LayerCase {
  const char* name;
  MultiHeadAttentionConfig config;
  DType inputs = DType::f32;
  bool self = true;
  bool masked = false;
};

void PrintTo(const LayerCase& test, std::ostream* to) { *to << test.name; }

class LayerOnFakeDevice : public testing::TestWithParam<LayerCase> {};

// Trains a layer for three steps. Returns the results and gradients of each step, then the parameters.
std::vector<Tensor> train(const LayerCase& test, Device device) {
  MultiHeadAttention layer = MultiHeadAttention(test.config, 3).to(device);
  const MultiHeadAttentionConfig& config = layer.config();
  const auto shape = [&](std::int64_t length, std::int64_t width) {
    return config.batch_first ? Dims{2, length, width} : Dims{length, 2, width};
  };
  const Tensor x = random(shape(6, config.embed_size), test.inputs, 1).to(device);
  const Tensor memory = random(shape(8, config.key_size), test.inputs, 2).to(device);
  const Tensor keep = random({2, 1, 6, test.self ? 6 : 8}, DType::f32, 3).to(DType::boolean).to(device);
  const ConstTensorView key = test.self ? ConstTensorView() : memory.view();
  std::vector<Adam> adam;
  for (const NamedTensor& parameter : layer.parameters())
    adam.emplace_back(parameter.value.shape(), DType::f32, device);
  std::vector<Tensor> all;
  LayerWorkspace workspace;
  for (std::uint64_t step = 0; step < 3; ++step) {
    LayerActivations kept;
    LayerOptions options;
    options.training = true;
    options.weights = ReturnWeights::per_head;
    options.keep = &kept;
    options.workspace = &workspace;
    options.attention.dropout.seed = step;
    if (test.masked) options.attention.masks = {Mask::keep(keep)};
    LayerResult result = layer.forward(x, key, {}, options);
    std::vector<Tensor> gradients = layer.zero_gradients();
    Tensor dx(x.shape(), DType::f32, device);
    layer.backward({.dquery = dx, .parameters = gradients}, {.dout = result.out, .dweights = result.weights}, kept, x,
                   key, {}, options);
    (void)clip_gradients(gradients, 0.5);
    if (config.dtype == DType::f32) {
      layer.change_parameters([&](std::size_t n, const TensorView& value) {
        adam[n].step(value, gradients[n], {.rate = 0.01, .weight_decay = 0.1});
      });
    }
    all.push_back(std::move(result.out)), all.push_back(std::move(result.weights)), all.push_back(std::move(dx));
    for (Tensor& gradient : gradients) all.push_back(std::move(gradient));
  }
  for (const NamedTensor& parameter : layer.parameters()) all.push_back(Tensor::copy_of(parameter.value));
  EXPECT_EQ(workspace.device_bytes() > 0, device != kCpu);
  return all;
}

TEST_P(LayerOnFakeDevice, TrainsWithTheCpusBits) {
  const std::vector<Tensor> here = train(GetParam(), kCpu), there = train(GetParam(), fake_device());
  ASSERT_EQ(here.size(), there.size());
  for (std::size_t n = 0; n < here.size(); ++n) EXPECT_TRUE(agree(there[n], here[n])) << n;
}

INSTANTIATE_TEST_SUITE_P(
    All, LayerOnFakeDevice,
    testing::Values(
        LayerCase{"SelfAttention", {.embed_size = 24, .heads = 4, .batch_first = true}},
        LayerCase{"BatchSecondWithEverything",
                  {.embed_size = 24,
                   .heads = 4,
                   .kv_heads = 2,
                   .output_size = 10,
                   .dropout = 0.2,
                   .output_dropout = 0.3,
                   .rotary = RotaryOptions{.max_positions = 4}}},
        LayerCase{"CrossAttentionWithAddedKeys",
                  {.embed_size = 24,
                   .heads = 4,
                   .key_size = 12,
                   .value_size = 12,
                   .add_bias_kv = true,
                   .add_zero_attention = true,
                   .batch_first = true},
                  DType::f32,
                  false,
                  true},
        LayerCase{"Masked", {.embed_size = 16, .heads = 2}, DType::f32, true, true},
        LayerCase{"Bf16", {.embed_size = 24, .heads = 4, .output_dropout = 0.1, .dtype = DType::bf16}, DType::bf16}),
    [](const testing::TestParamInfo<LayerCase>& one) { return std::string(one.param.name); });

TEST(FakeDevice, ALayersSliceStaysThereAndItsStateComesBack) {
  const MultiHeadAttention layer({.embed_size = 16, .heads = 4}, 5);
  const MultiHeadAttention there = layer.to(fake_device());
  const MultiHeadAttention back = there.to(kCpu);
  for (std::size_t n = 0; n < layer.parameters().size(); ++n) {
    EXPECT_TRUE(agree(there.parameters()[n].value, layer.parameters()[n].value));
    EXPECT_TRUE(same_bits(back.parameters()[n].value, layer.parameters()[n].value));
  }
  const Tensor x = random({3, 2, 16});
  const Tensor here = layer.slice(1, 2).forward(x).out;
  EXPECT_TRUE(agree(there.slice(1, 2).forward(x.to(fake_device())).out, here));
  EXPECT_NE(
      test::refusal([&] { there.save(testing::TempDir() + "never.safetensors"); }).find("copy it to the CPU first"),
      std::string::npos);
}

// ---------------------------------------------------------------- cache

struct CacheCase {
  const char* name;
  KvCacheConfig config;
};
void PrintTo(const CacheCase& test, std::ostream* to) { *to << test.name; }
class CacheOnFakeDevice : public testing::TestWithParam<CacheCase> {};

std::vector<Tensor> generate(const KvCacheConfig& given, Device device) {
  const MultiHeadAttention layer =
      MultiHeadAttention({.embed_size = 32, .heads = 4, .kv_heads = 2, .batch_first = true, .rotary = RotaryOptions{}},
                         3)
          .to(device);
  KvCacheConfig config = given;
  config.kv_heads = 2, config.head_size = 8, config.sequences = 3;
  KvCache cache(config, device);
  std::vector<std::int64_t> ids = {cache.add(), cache.add()};
  LayerWorkspace workspace;
  std::vector<Tensor> all;
  std::uint32_t seed = 0;
  const auto step = [&](std::int64_t length, const std::vector<std::int64_t>& lengths) {
    LayerOptions options;
    options.attention.causal = true;
    options.attention.key_lengths = lengths;
    options.cache = &cache;
    options.sequences = ids;
    options.workspace = &workspace;
    all.push_back(layer.forward(random({2, length, 32}, DType::f32, ++seed).to(device), options).out);
  };
  step(9, {9, 4});
  for (int n = 0; n < 10; ++n) step(1, {});
  ids[1] = cache.fork(ids[0], 11);
  for (int n = 0; n < 3; ++n) step(1, {});
  cache.truncate(ids[0], 5);
  cache.remove(ids[1]);
  ids[1] = cache.add();
  step(3, {});
  return all;
}

TEST_P(CacheOnFakeDevice, DecodesWithTheCpusBits) {
  const std::vector<Tensor> here = generate(GetParam().config, kCpu),
                            there = generate(GetParam().config, fake_device());
  for (std::size_t n = 0; n < here.size(); ++n) EXPECT_TRUE(agree(there[n], here[n])) << n;
}

INSTANTIATE_TEST_SUITE_P(All, CacheOnFakeDevice,
                         testing::Values(CacheCase{"Contiguous", {.length = 40}},
                                         CacheCase{"Paged", {.page_size = 16, .pages = 8}},
                                         CacheCase{"ContiguousInt8", {.dtype = DType::i8, .length = 40}},
                                         CacheCase{"PagedInt8", {.dtype = DType::i8, .page_size = 16, .pages = 8}},
                                         CacheCase{"PagedBf16", {.dtype = DType::bf16, .page_size = 16, .pages = 8}}),
                         [](const testing::TestParamInfo<CacheCase>& one) { return std::string(one.param.name); });

TEST(FakeDevice, ACacheOfInt8FindsWhatIsNotFinite) {
  KvCache cache({.kv_heads = 1, .head_size = 4, .dtype = DType::i8, .length = 8}, fake_device());
  const std::vector<std::int64_t> ids = {cache.add()};
  Tensor key = random({1, 1, 3, 4});
  key.view().at<float>(0, 0, 2, 1) = std::numeric_limits<float>::infinity();
  const Tensor there = key.to(fake_device());
  expect_error([&] { cache.append(ids, there, there); },
               "KvCache::append: key has a non-finite number at row 0, head 0, token 2; i8 cannot store it");
  EXPECT_EQ(cache.length(ids[0]), 0);
}

// ---------------------------------------------------------------- the rest of a model

TEST(FakeDevice, TheStepsOfAModelHaveTheCpusBits) {
  const std::vector<std::int32_t> tokens = {3, 0, 3, 1, 2}, targets = {0, kNoTarget, 1, 4, 2};
  const auto run = [&](Device device) {
    const Tensor table = random({5, 12}, DType::f32, 1).to(device), weight = random({12}, DType::f32, 2).to(device);
    const Tensor bias = random({12}, DType::f32, 3).to(device), up = random({20, 12}, DType::f32, 4).to(device);
    const Tensor down = random({5, 20}, DType::f32, 5).to(device), up_bias = random({20}, DType::f32, 6).to(device);
    const auto rows = [&](std::int64_t width) { return Tensor({5, width}, DType::f32, device); };
    Tensor x = rows(12), normed = rows(12), inner = rows(20), active = rows(20), logits = rows(5), dlogits = rows(5);
    embed(x, tokens, table);
    layer_norm(normed, x, weight, bias);
    linear(inner, normed, up, up_bias);
    gelu(active, inner);
    linear(logits, active, down);
    const double loss = cross_entropy(dlogits, logits, targets);
    Tensor dactive = rows(20), dnormed = rows(12), ddown({5, 20}, DType::f32, device),
           dup({20, 12}, DType::f32, device);
    Tensor dup_bias({20}, DType::f32, device), dweight({12}, DType::f32, device), dbias({12}, DType::f32, device);
    Tensor dtable({5, 12}, DType::f32, device);
    linear_backward({dactive, ddown, {}}, dlogits, active, down);
    gelu_backward(dactive, dactive, inner);
    linear_backward({dnormed, dup, dup_bias}, dactive, normed, up);
    layer_norm_backward({dnormed, dweight, dbias}, dnormed, x, weight);
    embed_backward(dtable, dnormed, tokens);
    std::vector<Tensor> all;
    for (Tensor* one : {&logits, &dlogits, &ddown, &dup, &dup_bias, &dweight, &dbias, &dtable}) {
      all.push_back(std::move(*one));
    }
    return std::pair(loss, std::move(all));
  };
  const auto here = run(kCpu), there = run(fake_device());
  EXPECT_EQ(here.first, there.first);
  for (std::size_t n = 0; n < here.second.size(); ++n) EXPECT_TRUE(agree(there.second[n], here.second[n])) << n;
}

}  // namespace
}  // namespace rapt
