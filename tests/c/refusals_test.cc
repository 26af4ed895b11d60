// Every bad call through C returns a status with the message of C++, and writes nothing. Some errors exist only in C.
#include <cstring>
#include <string>

#include <gtest/gtest.h>

#include "rapt/rapt.h"
#include "support/bad_calls.h"
#include "support/bad_layers.h"
#include "support/c_arguments.h"
#include "support/expect_error.h"

namespace rapt::test {
namespace {

const auto name_of_call = [](const auto& instance) { return std::string(instance.param.name); };

class BadForwardInC : public testing::TestWithParam<BadCall> {};
class BadBackwardInC : public testing::TestWithParam<BadCall> {};
class BadLayerInC : public testing::TestWithParam<BadConfig> {};
class BadForwardOfLayerInC : public testing::TestWithParam<BadLayerCall> {};
INSTANTIATE_TEST_SUITE_P(Calls, BadForwardInC, testing::ValuesIn(bad_forward_calls()), name_of_call);
INSTANTIATE_TEST_SUITE_P(Calls, BadBackwardInC, testing::ValuesIn(bad_backward_calls()), name_of_call);
INSTANTIATE_TEST_SUITE_P(Configs, BadLayerInC, testing::ValuesIn(bad_configs()), name_of_call);
INSTANTIATE_TEST_SUITE_P(Calls, BadForwardOfLayerInC, testing::ValuesIn(bad_layer_calls()), name_of_call);

// The error message of a call, whose status must be that of a bad argument.
std::string refusal_of(rapt_status status) {
  EXPECT_EQ(status, RAPT_BAD_ARGUMENT);
  return status == RAPT_OK ? "" : rapt_last_error();
}

TEST_P(BadForwardInC, HasTheWordsOfCpp) {
  expect_refusal(GetParam(), [](AttentionCall& call) {
    CArguments c;
    return refusal_of(rapt_attention(c.outputs(call.outputs), c.tensor(call.query), c.tensor(call.key),
                                     c.tensor(call.value), c.options(call.options)));
  });
}

TEST_P(BadBackwardInC, HasTheWordsOfCpp) {
  expect_refusal(GetParam(), [](AttentionCall& call) {
    CArguments c;
    return refusal_of(rapt_attention_backward(c.gradients(call.gradients), c.upstream(call.upstream),
                                              c.tensor(call.query), c.tensor(call.key), c.tensor(call.value),
                                              c.options(call.options)));
  });
}

TEST_P(BadLayerInC, HasTheWordsOfCpp) {
  MultiHeadAttentionConfig config = good_config();
  GetParam().spoil(config);
  CArguments c;
  rapt_layer* layer = nullptr;
  expect_words(GetParam().message, refusal_of(rapt_layer_create(&layer, c.config(config), 0)));
  EXPECT_EQ(layer, nullptr);
}

TEST_P(BadForwardOfLayerInC, HasTheWordsOfCpp) {
  expect_refusal(GetParam(), [](LayerCall& call) {
    CArguments c;
    rapt_layer* layer = nullptr;
    EXPECT_EQ(rapt_layer_create(&layer, c.config(call.config), 0), RAPT_OK);
    std::string words =
        refusal_of(rapt_layer_forward(layer, c.outputs(call.outputs), c.tensor(call.query), c.tensor(call.key),
                                      c.tensor(call.value), c.options(call.options)));
    rapt_layer_destroy(layer);
    return words;
  });
}

// A valid call in C, whose structs a test can make invalid.
class WrongOnlyInC : public testing::Test {
 protected:
  void SetUp() override {
    query = *c.tensor(call.query), key = *c.tensor(call.key), value = *c.tensor(call.value);
    outputs = *c.outputs(call.outputs), options = *c.options(call.options);
    upstream = *c.upstream(call.upstream), gradients = *c.gradients(call.gradients);
    ASSERT_EQ(forward(), RAPT_OK) << rapt_last_error();
  }
  rapt_status forward() { return rapt_attention(&outputs, &query, &key, &value, &options); }
  void expect(const std::string& words) { EXPECT_EQ(refusal_of(forward()), words); }

  AttentionCall call;
  CArguments c;
  DLTensor query, key, value;
  rapt_attention_outputs outputs;
  rapt_attention_options options;
  rapt_attention_upstream upstream;
  rapt_attention_gradients gradients;
};

TEST_F(WrongOnlyInC, TypesThatRaptDoesNotHave) {
  query.dtype = {kDLInt, 64, 1};
  expect(
      "rapt_attention: query has DLPack type code 0 of 64 bits and 1 lanes; it must be f32, f64 or f16 (code 2), "
      "bf16 "
      "(code 4), bool (code 6, 8 bits) or i8 (code 0), of 1 lane");
  query.dtype = {kDLFloat, 32, 4};
  EXPECT_EQ(forward(), RAPT_BAD_ARGUMENT);
  query.dtype = {kDLUInt, 8, 1};
  EXPECT_EQ(forward(), RAPT_BAD_ARGUMENT);
}

TEST_F(WrongOnlyInC, DevicesThatRaptDoesNotKnow) {
  const int rocm = 10;
  std::memcpy(&query.device.device_type, &rocm, sizeof rocm);
  expect("rapt_attention: query is on a device of DLPack type 10; it must be 1, the CPU, or 2, CUDA");
}

TEST_F(WrongOnlyInC, ShapesThatAreNotThere) {
  DLTensor good = query;
  query.shape = nullptr;
  expect("rapt_attention: query has 4 dimensions and no shape");
  query = good;
  query.ndim = -1;
  expect("rapt_attention: query has -1 dimensions and a shape");
  query.ndim = 9;
  std::int64_t nine[9] = {1, 1, 1, 1, 1, 1, 1, 1, 1};
  query.shape = nine, query.strides = nullptr;
  expect("tensor: rank 9 exceeds the maximum of 8");
  query.ndim = 4;
  nine[2] = -3;
  expect("tensor: shape (1, 1, -3, 1) has a negative size");
}

TEST_F(WrongOnlyInC, ChoicesThatThereAreNone) {
  options.engine = 4;
  expect("rapt_attention: options.engine is 4; it must be one of its constants, from 0 to 3");
  options.engine = 0;
  options.alignment_kind = -1;
  expect("rapt_attention: options.alignment_kind is -1; it must be one of its constants, from 0 to 3");
  options.alignment_kind = 0;
  rapt_mask masks[2];
  for (rapt_mask& mask : masks) {
    rapt_mask_init(&mask, sizeof mask);
    mask.view = c.tensor(call.hide);
  }
  masks[1].kind = 4;
  options.masks = masks, options.masks_count = 2;
  expect("rapt_attention: options.masks[1].kind is 4; it must be one of its constants, from 0 to 3");
  masks[1].kind = 0, masks[1].reserved = 1;
  expect("rapt_attention: options.masks[1].reserved is 1; it must be 0");
  options.masks_count = 0;
  rapt_capture capture;
  rapt_capture_init(&capture, sizeof capture);
  capture.to = c.tensor(call.weights), capture.stage = 5;
  outputs.captures = &capture, outputs.captures_count = 1;
  expect("rapt_attention: outputs.captures[0].stage is 5; it must be one of its constants, from 0 to 4");
}

TEST_F(WrongOnlyInC, ListsThatAreNotThere) {
  options.key_lengths_count = 2;
  expect("rapt_attention: options.key_lengths is null, but must have 2 values");
  options.key_lengths_count = 0, options.workspace_bytes = 8;
  expect("rapt_attention: options.workspace is null, but must have 8 values");
  options.workspace_bytes = 0, options.masks_count = 1;
  expect("rapt_attention: options.masks is null, but must have 1 values");
}

TEST_F(WrongOnlyInC, StructsThatAreNotThere) {
  EXPECT_EQ(refusal_of(rapt_attention(nullptr, &query, &key, &value, &options)), "rapt_attention: outputs is null");
  EXPECT_EQ(refusal_of(rapt_attention(&outputs, nullptr, &key, &value, nullptr)),
            "attention: query is missing; give a tensor");
  EXPECT_EQ(refusal_of(rapt_attention_backward(nullptr, &upstream, &query, &key, &value, &options)),
            "rapt_attention_backward: gradients is null");
  EXPECT_EQ(refusal_of(rapt_attention_backward(&gradients, nullptr, &query, &key, &value, &options)),
            "rapt_attention_backward: upstream is null");
  EXPECT_EQ(refusal_of(rapt_attention_workspace_bytes(nullptr, &outputs, &query, &key, &value, &options)),
            "rapt_attention_workspace_bytes: bytes is null");
  EXPECT_EQ(refusal_of(rapt_attention_options_init(nullptr, sizeof options)),
            "rapt_attention_options_init: options is null");
}

TEST(NullsInC, AreRefusedByEveryFunctionOfAHandle) {
  DLTensor tensor;
  std::int64_t number = 0;
  std::size_t size = 0;
  const char* text = nullptr;
  EXPECT_EQ(refusal_of(rapt_layer_create(nullptr, nullptr, 0)), "rapt_layer_create: layer is null");
  rapt_layer* layer = nullptr;
  EXPECT_EQ(refusal_of(rapt_layer_create(&layer, nullptr, 0)), "rapt_layer_create: config is null");
  EXPECT_EQ(refusal_of(rapt_layer_load(&layer, nullptr, nullptr)), "rapt_layer_load: path is null");
  EXPECT_EQ(refusal_of(rapt_layer_save(nullptr, "x", nullptr)), "rapt_layer_save: layer is null");
  EXPECT_EQ(refusal_of(rapt_layer_parameter(nullptr, "x", &tensor)), "rapt_layer_parameter: layer is null");
  EXPECT_EQ(refusal_of(rapt_layer_parameter_name(nullptr, 0, &text)), "rapt_layer_parameter_name: layer is null");
  EXPECT_EQ(refusal_of(rapt_layer_forward(nullptr, nullptr, nullptr, nullptr, nullptr, nullptr)),
            "rapt_layer_forward: layer is null");
  EXPECT_EQ(refusal_of(rapt_layer_backward(nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr)),
            "rapt_layer_backward: layer is null");
  EXPECT_EQ(refusal_of(rapt_kv_cache_add(nullptr, &number)), "rapt_kv_cache_add: cache is null");
  EXPECT_EQ(refusal_of(rapt_kv_cache_append(nullptr, nullptr, 0, nullptr, nullptr, nullptr)),
            "rapt_kv_cache_append: cache is null");
  EXPECT_EQ(refusal_of(rapt_safetensors_count(nullptr, &size)), "rapt_safetensors_count: file is null");
  EXPECT_EQ(refusal_of(rapt_safetensors_open(nullptr, "x")), "rapt_safetensors_open: file is null");
  EXPECT_EQ(refusal_of(rapt_npy_write(nullptr, nullptr)), "rapt_npy_write: path is null");
  EXPECT_EQ(refusal_of(rapt_array_tensor(nullptr, &tensor)), "rapt_array_tensor: array is null");
  EXPECT_EQ(refusal_of(rapt_thread_count(nullptr)), "rapt_thread_count: threads is null");
  EXPECT_EQ(refusal_of(rapt_use_instruction_set(nullptr)), "rapt_use_instruction_set: name is null");
  EXPECT_EQ(refusal_of(rapt_philox4x32_10(nullptr, nullptr, nullptr)), "rapt_philox4x32_10: random is null");
  rapt_layer_destroy(nullptr);
  rapt_kv_cache_destroy(nullptr);
  rapt_safetensors_close(nullptr);
  rapt_npz_close(nullptr);
  rapt_array_destroy(nullptr);
  rapt_parameter_gradients_destroy(nullptr);
  rapt_layer_workspace_destroy(nullptr);
  rapt_layer_activations_destroy(nullptr);
}

TEST(FilesInC, ThatAreNotThereOrBrokenAreFileErrors) {
  rapt_safetensors* file = nullptr;
  EXPECT_EQ(rapt_safetensors_open(&file, "/nowhere/at/all.safetensors"), RAPT_FILE_ERROR);
  EXPECT_EQ(std::string(rapt_last_error()),
            "safetensors: /nowhere/at/all.safetensors: cannot be opened: No such file or directory");
  EXPECT_EQ(rapt_safetensors_open_bytes(&file, "seven..", 7, "it"), RAPT_FILE_ERROR);
  EXPECT_EQ(std::string(rapt_last_error()), "safetensors: it: has 7 bytes; a header's size alone takes 8");
  rapt_layer* layer = nullptr;
  EXPECT_EQ(rapt_layer_load(&layer, "/nowhere/at/all.safetensors", nullptr), RAPT_FILE_ERROR);
  rapt_array* array = nullptr;
  EXPECT_EQ(rapt_npy_read(&array, "/nowhere/at/all.npy", nullptr), RAPT_FILE_ERROR);
  rapt_npz* archive = nullptr;
  EXPECT_EQ(rapt_npz_open(&archive, "/nowhere/at/all.npz"), RAPT_FILE_ERROR);
  EXPECT_TRUE(file == nullptr && layer == nullptr && array == nullptr && archive == nullptr);
}

}  // namespace
}  // namespace rapt::test
