// Structs that start with their size: shorter ones of older callers work, longer ones are rejected.
#include <cstddef>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "bindings/c/options.h"
#include "rapt/rapt.h"
#include "support/bad_calls.h"
#include "support/c_arguments.h"
#include "support/expect_error.h"
#include "support/same_bits.h"

namespace rapt::test {
namespace {

template <class Struct>
class EveryStruct : public testing::Test {};
using Structs =
    testing::Types<rapt_mask, rapt_attention_options, rapt_capture, rapt_attention_outputs, rapt_weights_gradient,
                   rapt_attention_upstream, rapt_mask_gradient, rapt_attention_gradients, rapt_kv_cache_config,
                   rapt_rotary_options, rapt_layer_config, rapt_layer_options, rapt_layer_outputs, rapt_layer_upstream,
                   rapt_layer_gradients, rapt_load_options, rapt_save_options, rapt_npy_options>;
TYPED_TEST_SUITE(EveryStruct, Structs);

TYPED_TEST(EveryStruct, OfAnOlderCallerHasDefaultsPastItsEnd) {
  const c::Caller caller("f");
  const TypeParam defaults = c::defaults<TypeParam>();
  for (std::size_t size = sizeof(std::size_t); size <= sizeof(TypeParam); size += sizeof(std::int64_t)) {
    std::vector<std::byte> given(sizeof(TypeParam), std::byte{0xA5});  // memory after an older struct
    std::memcpy(given.data(), &size, sizeof size);
    TypeParam as_given;
    std::memcpy(&as_given, given.data(), sizeof as_given);
    const TypeParam read = c::whole(caller, {"s"}, &as_given);
    EXPECT_EQ(std::memcmp(&read, given.data(), size), 0) << size;
    const auto* rest = reinterpret_cast<const std::byte*>(&read) + size;
    const auto* wanted = reinterpret_cast<const std::byte*>(&defaults) + size;
    EXPECT_EQ(std::memcmp(rest, wanted, sizeof(TypeParam) - size), 0) << size;
  }
}

TYPED_TEST(EveryStruct, OfAnotherSizeIsRefused) {
  const c::Caller caller("f");
  TypeParam given = c::defaults<TypeParam>();
  for (const std::size_t size : {std::size_t{0}, std::size_t{1}, std::size_t{12}, sizeof(TypeParam) - 1,
                                 sizeof(TypeParam) + 8, std::size_t{0xDEADBEEF}, static_cast<std::size_t>(-8)}) {
    given.struct_size = size;
    const std::string known = std::to_string(sizeof(TypeParam));
    const std::string words = "f: s.struct_size is " + std::to_string(size) + "; this library expects " + known +
                              ": initialize the struct with its init function";
    EXPECT_EQ(refusal([&] { (void)c::whole(caller, {"s"}, &given); }),
              size > sizeof(TypeParam) ? words + ", or use a newer library" : words);
  }
}

TYPED_TEST(EveryStruct, IsAllDefaultsWhereItIsNull) {
  const TypeParam read = c::whole<TypeParam>(c::Caller("f"), {"s"}, nullptr);
  EXPECT_TRUE(same_bytes(read, c::defaults<TypeParam>()));
}

TEST(StructsInC, BeginWithTheDefaultsOfCpp) {
  CArguments c;
  rapt_attention_options options;
  ASSERT_EQ(rapt_attention_options_init(&options, sizeof options), RAPT_OK);
  EXPECT_TRUE(same_bytes(options, *c.options(AttentionOptions{})));
  rapt_layer_config config;
  ASSERT_EQ(rapt_layer_config_init(&config, sizeof config), RAPT_OK);
  EXPECT_TRUE(same_bytes(config, *c.config(MultiHeadAttentionConfig{})));
  EXPECT_EQ(config.bias, 1);
  EXPECT_EQ(config.slice_count, 1);
  rapt_rotary_options rotary;
  ASSERT_EQ(rapt_rotary_options_init(&rotary, sizeof rotary), RAPT_OK);
  EXPECT_TRUE(same_bytes(rotary, *c.rotary(RotaryOptions{})));
  EXPECT_EQ(rotary.base, 10000.0);
  rapt_kv_cache_config cache;
  ASSERT_EQ(rapt_kv_cache_config_init(&cache, sizeof cache), RAPT_OK);
  EXPECT_EQ(cache.kv_heads, 1);
  EXPECT_EQ(cache.sequences, 1);
  rapt_capture capture;
  ASSERT_EQ(rapt_capture_init(&capture, sizeof capture), RAPT_OK);
  EXPECT_EQ(capture.stage, RAPT_STAGE_DROPPED_WEIGHTS);
}

TEST(StructsInC, AreInitialisedOnlyAsFarAsTheCallerSays) {
  std::vector<std::byte> memory(sizeof(rapt_layer_config), std::byte{7});
  auto* config = reinterpret_cast<rapt_layer_config*>(memory.data());
  ASSERT_EQ(rapt_layer_config_init(config, 24), RAPT_OK);
  EXPECT_EQ(config->struct_size, 24U);
  EXPECT_EQ(config->embed_size, 0);
  for (std::size_t n = 24; n < memory.size(); ++n) ASSERT_EQ(memory[n], std::byte{7}) << n;
  EXPECT_EQ(rapt_layer_config_init(config, sizeof *config + 8), RAPT_BAD_ARGUMENT);
  EXPECT_EQ(std::string(rapt_last_error()),
            "rapt_layer_config_init: config.struct_size is " + std::to_string(sizeof *config + 8) +
                "; this library expects " + std::to_string(sizeof *config) +
                ": initialize the struct with its init function, or use a newer library");
  EXPECT_EQ(config->struct_size, 24U);
}

// Masks of 24 bytes, without their last field, are 24 bytes apart.
TEST(StructsInC, OfAnOlderCallerLieCloserInAnArray) {
  AttentionCall call;
  call.hide.values<bool>()[7] = true;
  for (float& value : call.bias.values<float>()) value = 0.25F;
  call.bias.values<float>()[3] = -2.0F;
  call.options.masks = {Mask::drop(call.hide), Mask::add(call.bias)};
  const Tensor wanted = attention(call.query, call.key, call.value, call.options);

  CArguments c;
  rapt_attention_options options = *c.options(call.options);
  constexpr std::size_t kOlder = offsetof(rapt_mask, value);
  std::vector<std::byte> masks(2 * kOlder);
  for (std::size_t n = 0; n < 2; ++n) {
    rapt_mask mask = options.masks[n];
    mask.struct_size = kOlder;
    std::memcpy(masks.data() + n * kOlder, &mask, kOlder);
  }
  options.masks = reinterpret_cast<const rapt_mask*>(masks.data());
  call.outputs.lse = {};
  ASSERT_EQ(
      rapt_attention(c.outputs(call.outputs), c.tensor(call.query), c.tensor(call.key), c.tensor(call.value), &options),
      RAPT_OK)
      << rapt_last_error();
  EXPECT_TRUE(same_bits(call.out_memory, wanted));

  const std::size_t other = sizeof(rapt_mask);
  std::memcpy(masks.data() + kOlder, &other, sizeof other);
  EXPECT_EQ(
      rapt_attention(c.outputs(call.outputs), c.tensor(call.query), c.tensor(call.key), c.tensor(call.value), &options),
      RAPT_BAD_ARGUMENT);
  EXPECT_EQ(std::string(rapt_last_error()),
            "rapt_attention: options.masks[1].struct_size is 32, the first struct has 24; all structs of an array must "
            "have the same size");
}

TEST(ErrorsInC, BelongToTheThreadThatMadeThem) {
  EXPECT_EQ(rapt_use_instruction_set("abacus"), RAPT_BAD_ARGUMENT);
  const std::string mine = rapt_last_error();
  EXPECT_EQ(mine.rfind("instruction set: unknown name abacus", 0), 0U) << mine;
  std::string before, after;
  std::thread([&] {
    before = rapt_last_error();
    EXPECT_EQ(rapt_thread_count(nullptr), RAPT_BAD_ARGUMENT);
    after = rapt_last_error();
  }).join();
  EXPECT_EQ(before, "");
  EXPECT_EQ(after, "rapt_thread_count: threads is null");
  EXPECT_EQ(rapt_last_error(), mine);
  std::int32_t threads = 0;
  EXPECT_EQ(rapt_thread_count(&threads), RAPT_OK);
  EXPECT_EQ(rapt_last_error(), mine);  // a successful call leaves the message unchanged
}

}  // namespace
}  // namespace rapt::test
