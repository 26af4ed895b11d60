// Every allocation of a call fails in turn: the call returns a status, and never throws or aborts.
#include <functional>
#include <string>

#include <gtest/gtest.h>

#include "rapt/rapt.h"
#include "support/allocations.h"
#include "support/c_arguments.h"
#include "support/files.h"

namespace rapt::test {
namespace {

// Tries a call on a heap that allows 0, 1, 2, … more allocations until the call succeeds.
void expect_a_status_wherever_memory_ends(const std::function<rapt_status()>& call) {
  if (!kCountsAllocations) GTEST_SKIP() << "a sanitizer brings its own heap";
  ASSERT_EQ(call(), RAPT_OK) << rapt_last_error();
  for (std::int64_t room = 0; room < 100000; ++room) {
    rapt_status status = RAPT_OK;
    {
      const HeapWithRoomFor heap(room);
      status = call();
    }
    if (status == RAPT_OK) {
      EXPECT_GT(room, 0) << "it asked for no memory at all";
      return;
    }
    ASSERT_EQ(status, RAPT_OUT_OF_MEMORY) << room << ": " << rapt_last_error();
    ASSERT_EQ(std::string(rapt_last_error()), "rapt: out of memory");
  }
  FAIL() << "it never succeeded";
}

struct SmallCall {
  Tensor q{{1, 2, 40, 8}}, k{{1, 2, 300, 8}}, v{{1, 2, 300, 8}}, out{{1, 2, 40, 8}}, bias{{40, 300}}, x{{1, 6, 8}};
  CArguments c;
  AttentionOptions options{.threads = 1};

  SmallCall() {
    options.masks = {Mask::add(bias)};
    options.key_lengths = {290};
  }
};

TEST(OutOfMemoryInC, IsAStatusOfAttention) {
  SmallCall s;
  const rapt_attention_outputs* outputs = s.c.outputs(AttentionOutputs{.out = s.out});
  const rapt_attention_options* options = s.c.options(s.options);
  const DLTensor *q = s.c.tensor(s.q), *k = s.c.tensor(s.k), *v = s.c.tensor(s.v);
  expect_a_status_wherever_memory_ends([&] { return rapt_attention(outputs, q, k, v, options); });
}

TEST(OutOfMemoryInC, IsAStatusOfGradients) {
  SmallCall s;
  Tensor dq(s.q.shape()), dk(s.k.shape()), dbias(s.bias.shape());
  const rapt_attention_gradients* gradients =
      s.c.gradients(AttentionGradients{.dquery = dq, .dkey = dk, .dmasks = {{0, dbias}}});
  const rapt_attention_upstream* upstream = s.c.upstream(AttentionUpstream{.dout = s.out});
  const rapt_attention_options* options = s.c.options(s.options);
  const DLTensor *q = s.c.tensor(s.q), *k = s.c.tensor(s.k), *v = s.c.tensor(s.v);
  expect_a_status_wherever_memory_ends([&] { return rapt_attention_backward(gradients, upstream, q, k, v, options); });
}

TEST(OutOfMemoryInC, IsAStatusOfARefusal) {
  SmallCall s;
  if (!kCountsAllocations) GTEST_SKIP();
  const rapt_attention_outputs* outputs = s.c.outputs(AttentionOutputs{.out = s.out});
  const DLTensor* q = s.c.tensor(s.q);
  for (std::int64_t room = 0; room < 30; ++room) {
    rapt_status status = RAPT_OK;
    {
      const HeapWithRoomFor heap(room);
      status = rapt_attention(outputs, q, q, nullptr, nullptr);
    }
    EXPECT_TRUE(status == RAPT_OUT_OF_MEMORY || status == RAPT_BAD_ARGUMENT) << room;
    EXPECT_STRNE(rapt_last_error(), "");
  }
}

TEST(OutOfMemoryInC, IsAStatusOfTheLayer) {
  CArguments c;
  const rapt_layer_config* config =
      c.config({.embed_size = 8, .heads = 2, .batch_first = true, .rotary = RotaryOptions{.max_positions = 8}});
  const auto create = [&](rapt_layer** layer) { return rapt_layer_create(layer, config, 1); };
  expect_a_status_wherever_memory_ends([&] {
    rapt_layer* layer = nullptr;
    const rapt_status status = create(&layer);
    rapt_layer_destroy(layer);
    return status;
  });
  if (!kCountsAllocations) return;
  SmallCall s;
  Tensor out(s.x.shape()), dx(s.x.shape());
  const rapt_layer_outputs* outputs = c.outputs(LayerOutputs{.out = out});
  rapt_layer_options* options = c.options(LayerOptions{.attention = {.threads = 1}});
  const DLTensor* x = c.tensor(s.x);
  rapt_layer_gradients* gradients = c.gradients(LayerGradients{.dquery = dx});
  const rapt_layer_upstream* upstream = c.upstream(LayerUpstream{.dout = s.x});
  // Everything is created anew each time, because a layer packs its weights only once.
  expect_a_status_wherever_memory_ends([&] {
    rapt_layer* layer = nullptr;
    rapt_layer_activations* kept = nullptr;
    rapt_parameter_gradients* parameters = nullptr;
    rapt_status status = create(&layer);
    if (status == RAPT_OK) status = rapt_layer_activations_create(&kept);
    if (status == RAPT_OK) status = rapt_parameter_gradients_create(&parameters, layer);
    options->keep = kept, gradients->parameters = parameters;
    if (status == RAPT_OK) status = rapt_layer_forward(layer, outputs, x, nullptr, nullptr, options);
    if (status == RAPT_OK) status = rapt_layer_backward(layer, gradients, upstream, kept, x, nullptr, nullptr, options);
    rapt_parameter_gradients_destroy(parameters);
    rapt_layer_activations_destroy(kept);
    rapt_layer_destroy(layer);
    return status;
  });
}

TEST(OutOfMemoryInC, IsAStatusOfTheCache) {
  SmallCall s;
  rapt_kv_cache_config config;
  rapt_kv_cache_config_init(&config, sizeof config);
  config.kv_heads = 2, config.head_size = 8, config.page_size = 16, config.pages = 40, config.sequences = 2;
  const DLTensor *q = s.c.tensor(s.q), *k = s.c.tensor(s.k), *v = s.c.tensor(s.v);
  const rapt_attention_outputs* outputs = s.c.outputs(AttentionOutputs{.out = s.out});
  expect_a_status_wherever_memory_ends([&] {
    rapt_kv_cache* cache = nullptr;
    std::int64_t id = 0, other = 0;
    rapt_status status = rapt_kv_cache_create(&cache, &config);
    if (status == RAPT_OK) status = rapt_kv_cache_add(cache, &id);
    if (status == RAPT_OK) status = rapt_kv_cache_append(cache, &id, 1, k, v, nullptr);
    if (status == RAPT_OK) status = rapt_kv_cache_fork(cache, id, 100, &other);
    if (status == RAPT_OK) status = rapt_kv_cache_attention(cache, &id, 1, outputs, q, nullptr);
    rapt_kv_cache_destroy(cache);
    return status;
  });
}

TEST(OutOfMemoryInC, IsAStatusOfFiles) {
  SmallCall s;
  const TemporaryFolder folder;
  const std::string path = folder / "x.safetensors", npz = folder / "x.npz";
  const rapt_named_tensor tensors[] = {{"x", s.c.tensor(s.x)}};
  const rapt_text_pair words[] = {{"made", "by a test"}};
  expect_a_status_wherever_memory_ends([&] { return rapt_safetensors_write(path.c_str(), tensors, 1, words, 1); });
  expect_a_status_wherever_memory_ends([&] {
    rapt_safetensors* file = nullptr;
    DLTensor x;
    rapt_status status = rapt_safetensors_open(&file, path.c_str());
    if (status == RAPT_OK) status = rapt_safetensors_find(file, "x", &x);
    rapt_safetensors_close(file);
    return status;
  });
  expect_a_status_wherever_memory_ends([&] { return rapt_npz_write(npz.c_str(), tensors, 1, 0); });
  expect_a_status_wherever_memory_ends([&] {
    rapt_npz* file = nullptr;
    rapt_array* array = nullptr;
    rapt_status status = rapt_npz_open(&file, npz.c_str());
    if (status == RAPT_OK) status = rapt_npz_read(&array, file, "x", nullptr);
    rapt_array_destroy(array);
    rapt_npz_close(file);
    return status;
  });
  expect_a_status_wherever_memory_ends([&] {
    rapt_layer* layer = nullptr;
    rapt_load_options options;
    rapt_load_options_init(&options, sizeof options);
    options.heads = 2;
    const rapt_status status = rapt_layer_load(&layer, RAPT_TEST_DATA "/layers/torch.safetensors", &options);
    rapt_layer_destroy(layer);
    return status;
  });
}

}  // namespace
}  // namespace rapt::test
