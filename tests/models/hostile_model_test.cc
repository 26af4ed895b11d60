// Configs and weights that lie: each is refused with a message that names the entry, the tensor and the sizes.
#include <cstdint>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "models/files.h"
#include "models/model.h"
#include "models/tiny_model.h"
#include "support/files.h"

namespace rapt::test {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

std::string refused(TinyModel& tiny) {
  return refusal_of([&] {
    const models::ModelFiles files = tiny.files();
    (void)models::Model::read(files);
  });
}

std::string with(const std::string& name, const std::string& entry, const json& value) {
  TinyModel tiny(name);
  tiny.config[entry] = value;
  return refused(tiny);
}

std::string without(const std::string& name, const std::string& entry) {
  TinyModel tiny(name);
  tiny.config.erase(entry);
  return refused(tiny);
}

std::string of_text(const std::string& config) {
  models::ModelFiles files;
  files.set_where("m");
  files.add("config.json", bytes_of(config));
  return cheap_refusal_of([&] { (void)models::ModelConfig::read(files); });
}

TEST(HostileConfig, IsRefusedByTheNameOfItsKind) {
  EXPECT_EQ(
      with("bert", "model_type", "t5"),
      "model: bert: config.json says model_type is \"t5\"; rapt runs bert (also MiniLM), distilbert, roberta and gpt2");
  EXPECT_THAT(with("bert", "model_type", "xlm-roberta"), HasSubstr("model_type is \"xlm-roberta\""));
  EXPECT_THAT(with("bert", "model_type", "\x1b[2J"), HasSubstr("model_type is \"\\x1b[2J\""));
  EXPECT_THAT(of_text("{}"), HasSubstr("has neither model_type nor architectures"));
  EXPECT_THAT(of_text(R"({"architectures": ["LlamaForCausalLM"]})"),
              HasSubstr("architectures is \"LlamaForCausalLM\""));
  TinyModel tiny("bert");
  tiny.config.erase("model_type");  // the architectures say it, too
  EXPECT_EQ(refused(tiny), "");
}

TEST(HostileConfig, IsRefusedIfItIsNoObject) {
  EXPECT_THAT(of_text("{\"model_type\": }"), HasSubstr("model: m: config.json: byte 16: not JSON"));
  EXPECT_EQ(of_text("[]"), "model: m: config.json is not an object with entries");
  EXPECT_EQ(of_text(R"({"model_type": "bert", "model_type": "gpt2"})"),
            "model: m: config.json: the key \"model_type\" appears twice in an object");
  EXPECT_EQ(of_text(R"({"a": )" + std::string(100000, '[')),
            "model: m: config.json: values are nested more than 32 levels deep");
  EXPECT_THAT(of_text(R"({"model_type": "bert", "layer_norm_eps": 1e999})"), HasSubstr("config.json: byte "));
}

TEST(HostileConfig, IsRefusedForASizeThatIsNone) {
  for (const json& value : {json(0), json(-1), json(2.5), json("2"), json(true), json(1e9), json(std::uint64_t(-1))}) {
    const std::string message = with("bert", "num_hidden_layers", value);
    EXPECT_THAT(message, HasSubstr("model: bert: config.json says num_hidden_layers is ")) << value;
    EXPECT_THAT(message, HasSubstr("; it must be an integer from 1 to 1024")) << value;
  }
  EXPECT_EQ(without("bert", "hidden_size"), "model: bert: config.json has no hidden_size, an integer from 1 to 65536");
  EXPECT_EQ(without("gpt2", "n_embd"), "model: gpt2: config.json has no n_embd, an integer from 1 to 65536");
  EXPECT_EQ(with("bert", "num_attention_heads", 3),
            "model: bert: config.json says num_attention_heads is 3 and hidden_size is 16; the number of heads must "
            "divide the "
            "width");
  EXPECT_EQ(with("bert", "layer_norm_eps", -1.0),
            "model: bert: config.json says layer_norm_eps is -1; it must be a number from 0 to 1");
  EXPECT_THAT(with("roberta", "pad_token_id", 39), HasSubstr("positions start after the padding token's"));
}

TEST(HostileConfig, IsRefusedForWhatRaptDoesNotCompute) {
  EXPECT_EQ(with("bert", "hidden_act", "silu"),
            "model: bert: config.json says hidden_act is \"silu\"; rapt has gelu, gelu_python, gelu_new, gelu_fast, "
            "gelu_pytorch_tanh, relu");
  EXPECT_THAT(with("gpt2", "activation_function", 3), HasSubstr("activation_function is 3; it must be a string"));
  EXPECT_THAT(with("bert", "position_embedding_type", "relative_key"), HasSubstr("rapt has only \"absolute\""));
  EXPECT_THAT(with("bert", "is_decoder", true), HasSubstr("is_decoder is true"));
  EXPECT_THAT(with("bert", "is_decoder", 1), HasSubstr("is_decoder is 1; it must be true or false"));
  EXPECT_THAT(with("gpt2", "add_cross_attention", true), HasSubstr("add_cross_attention is true"));
  EXPECT_THAT(with("bert", "pruned_heads", json{{"0", {1}}}), HasSubstr("has pruned_heads in 1 layers"));
}

TEST(LyingConfig, IsRefusedByEntryTensorAndSizes) {
  EXPECT_EQ(with("bert", "intermediate_size", 37),
            "model: bert: config.json says intermediate_size is 37, so size 0 of "
            "\"bert.encoder.layer.0.intermediate.dense.weight\" must be 37; it is 24 in (24, 16)");
  EXPECT_EQ(with("bert", "hidden_size", 32),
            "model: bert: config.json says hidden_size is 32, so size 1 of \"bert.embeddings.word_embeddings.weight\" "
            "must be "
            "32; it is 16 in (35, 16)");
  EXPECT_THAT(with("gpt2", "n_inner", 20),
              HasSubstr("n_inner is 20, so size 1 of \"transformer.h.0.mlp.c_fc.weight\""));
  EXPECT_THAT(with("distilbert", "vocab_size", 1000),
              HasSubstr("vocab_size is 1000, so size 0 of \"distilbert.embeddings.word_embeddings.weight\""));
  EXPECT_THAT(with("roberta", "max_position_embeddings", 514), HasSubstr("max_position_embeddings is 514"));
  EXPECT_THAT(with("bert", "type_vocab_size", 5), HasSubstr("token_type_embeddings.weight\" must be 5; it is 2"));
  EXPECT_EQ(with("bert", "num_hidden_layers", 3),
            "model: bert: config.json says num_hidden_layers is 3; the weights have 2 layers, and no "
            "\"bert.encoder.layer.2.attention.self.query.weight\"");
  EXPECT_EQ(with("bert", "num_hidden_layers", 1),
            "model: bert: config.json says num_hidden_layers is 1; the weights have at least 2 layers, with "
            "\"bert.encoder.layer.1.attention.self.query.weight\"");
  EXPECT_EQ(with("bert", "model_type", "gpt2"), "model: bert: config.json has no n_layer, an integer from 1 to 1024");
}

TEST(HostileWeights, AreRefusedByTheirNames) {
  TinyModel tiny("gpt2");
  tiny.tensors.erase("transformer.h.1.attn.c_attn.bias");
  EXPECT_EQ(refused(tiny), "model: gpt2: the weights have no \"transformer.h.1.attn.c_attn.bias\"");
  tiny = TinyModel("gpt2");
  tiny.tensors.at("transformer.ln_f.bias") = Tensor({4, 4}, DType::f32);
  EXPECT_EQ(refused(tiny), "model: gpt2: \"transformer.ln_f.bias\" has shape (4, 4); its rank must be 1");
  tiny = TinyModel("gpt2");
  tiny.tensors.at("transformer.ln_f.bias") = Tensor({16}, DType::i8);
  EXPECT_EQ(refused(tiny), "model: gpt2: \"transformer.ln_f.bias\" holds \"I8\"; weights are F32, F16 or BF16");
  tiny = TinyModel("gpt2");
  tiny.tensors.emplace("decoder.wte.weight", tiny.tensors.at("transformer.wte.weight").clone());
  EXPECT_EQ(refused(tiny),
            "model: gpt2: the weights hold 2 models, under \"decoder.\" and \"transformer.\"; rapt runs one");
  tiny.tensors.clear();
  EXPECT_THAT(refused(tiny), HasSubstr("no weights have the name \"wte.weight\", with or without a prefix"));
}

TEST(HostileWeights, AreRefusedIfTwoFilesHaveATensor) {
  TinyModel tiny("bert");
  models::ModelFiles files = tiny.files();
  const std::vector<std::byte> again = safetensors_bytes({{"cls.predictions.bias", Tensor({35}, DType::f32).view()}});
  files.add("more.safetensors", again);
  EXPECT_EQ(
      refusal_of([&] { (void)models::Model::read(files); }),
      "model: bert: two safetensors files have a tensor \"cls.predictions.bias\"; give the path of the file to use");
  models::ModelFiles none;
  none.set_where("m");
  none.add("config.json", bytes_of(tiny.config.dump()));
  EXPECT_EQ(refusal_of([&] { (void)models::Model::read(none); }), "model: m has no safetensors file with weights");
}

}  // namespace
}  // namespace rapt::test
