// Layers from files: every family of names as PyTorch saved it (tests/data/make_layers.py), and round trips through
// save and load.

#include <cstdint>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "rapt/multi_head_attention.h"
#include "support/files.h"
#include "support/relative_error.h"

namespace rapt::test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr const char* kPrefix = "model.layers.0.attn.";

struct LayerFile {
  const char* name;
  NameFamily family;
};
constexpr LayerFile kFiles[] = {{"torch", NameFamily::torch},
                                {"torch_no_bias", NameFamily::torch},
                                {"torch_kdim", NameFamily::torch},
                                {"w_q", NameFamily::w_q},
                                {"w_query", NameFamily::w_query},
                                {"q_linear", NameFamily::q_linear},
                                {"distilbert", NameFamily::q_linear},
                                {"wq", NameFamily::wq},
                                {"o_proj", NameFamily::q_proj},
                                {"out_proj", NameFamily::q_proj},
                                {"bert", NameFamily::query},
                                {"vit", NameFamily::query},
                                {"query", NameFamily::query},
                                {"to_q", NameFamily::to_q},
                                {"qkv", NameFamily::qkv},
                                {"qkv_proj", NameFamily::qkv},
                                {"gpt2", NameFamily::c_attn},
                                {"nano_gpt", NameFamily::c_attn}};

std::string path_of(const std::string& name) { return RAPT_TEST_DATA "/layers/" + name + ".safetensors"; }

LoadedLayer loaded(const std::string& name, const LoadOptions& options = {.heads = 4, .batch_first = true}) {
  return MultiHeadAttention::load(path_of(name), options);
}

// The layer's output for the file's input; a layer with its own key and value sizes gets slices of the input.
Tensor answer_of(const MultiHeadAttention& layer, const ConstTensorView& input) {
  const MultiHeadAttentionConfig& config = layer.config();
  const Tensor x = Tensor::copy_of(input, config.dtype);
  if (config.key_size == config.embed_size) return layer.forward(x).out;
  return layer.forward(x, x.view().slice(2, 0, config.key_size), x.view().slice(2, 0, config.value_size)).out;
}

class LayerFiles : public ::testing::TestWithParam<LayerFile> {};

INSTANTIATE_TEST_SUITE_P(Of, LayerFiles, ::testing::ValuesIn(kFiles),
                         [](const auto& file) { return std::string(file.param.name); });

TEST_P(LayerFiles, AnswerAsPyTorchDid) {
  const SafetensorsFile file(path_of(GetParam().name));
  const LoadedLayer loaded = MultiHeadAttention::load(file, {.heads = 4, .batch_first = true});
  EXPECT_EQ(loaded.found.family, GetParam().family);
  EXPECT_EQ(loaded.found.prefix, kPrefix);
  EXPECT_THAT(loaded.found.left_over, IsEmpty());
  EXPECT_LT(relative_error(answer_of(loaded.layer, file.at("input")), file.at("answer")), 2e-6);
  const LoadedLayer exact = MultiHeadAttention::load(file, {.heads = 4, .batch_first = true, .dtype = DType::f64});
  EXPECT_LT(relative_error(answer_of(exact.layer, file.at("input")), file.at("answer")), 1e-12);
}

TEST_P(LayerFiles, GiveTheSameBitsThroughEveryFamily) {
  const SafetensorsFile file(path_of(GetParam().name));
  const MultiHeadAttention first = loaded(GetParam().name).layer;
  const Tensor wanted = answer_of(first, file.at("input"));
  const TemporaryFolder folder;
  for (const NameFamily family : name_families()) {
    for (const char* ending : {".safetensors", ".npz"}) {
      SCOPED_TRACE(std::string(name_of(family)) + ending);
      const std::string path = folder / (std::string(name_of(family)) + ending);
      if (std::string(GetParam().name) == "torch_kdim" && (family == NameFamily::qkv || family == NameFamily::c_attn)) {
        EXPECT_THAT(refusal_of([&] { first.save(path, {.family = family}); }), HasSubstr("do not fit in one tensor"));
        continue;
      }
      first.save(path, {.family = family, .prefix = "h.0"});
      const LoadedLayer again = MultiHeadAttention::load(path, {.heads = 4, .batch_first = true});
      EXPECT_EQ(again.found.family, family);
      EXPECT_EQ(again.found.prefix, "h.0.");
      EXPECT_THAT(again.found.left_over, IsEmpty());
      EXPECT_EQ(again.layer.config().context_length, first.config().context_length);
      expect_same(answer_of(again.layer, file.at("input")), wanted);
    }
  }
}

TEST(LayerFromAFile, TakesItsSizesFromTheTensors) {
  const MultiHeadAttention layer = loaded("wq").layer;
  EXPECT_EQ(layer.config().heads, 4);
  EXPECT_EQ(layer.config().kv_heads, 2);
  EXPECT_EQ(layer.config().head_size, 3);
  EXPECT_EQ(layer.config().context_length, 7);
  EXPECT_FALSE(layer.config().bias);
  EXPECT_EQ(loaded("o_proj").layer.config().kv_heads, 1);
  EXPECT_EQ(loaded("torch_kdim").layer.config().key_size, 5);
  EXPECT_TRUE(loaded("torch_kdim").layer.config().add_bias_kv);
}

TEST(LayerFromAFile, SaysWhichTensorWentWhere) {
  const FoundLayer found = loaded("out_proj").found;
  ASSERT_EQ(found.tensors.size(), 7);
  EXPECT_EQ(found.tensors[0].tensor, "model.layers.0.attn.q_proj.weight");
  EXPECT_EQ(found.tensors[0].role, "weight of q");
  EXPECT_THAT(found.missing, ElementsAre("model.layers.0.attn.k_proj.bias"));
}

TEST(LayerFromAFile, NamesWhatIsLeftOverUnderItsPrefix) {
  const SafetensorsFile file(path_of("w_q"));
  std::vector<NamedTensor> tensors;
  for (const std::string& name : file.names()) tensors.push_back({name, file.at(name)});
  const Tensor mask = Tensor::from<float>({2, 2}, {1, 1, 1, 1});
  tensors.push_back({std::string(kPrefix) + "mask", mask});
  tensors.push_back({std::string(kPrefix) + "norm.weight", mask});
  const LoadedLayer loaded = MultiHeadAttention::load(tensors, {.heads = 4});
  EXPECT_THAT(loaded.found.left_over, ElementsAre("model.layers.0.attn.norm.weight", "model.layers.0.attn.mask"));
  EXPECT_EQ(loaded.layer.config().context_length, 0) << "a mask that is not causal";
}

TEST(LayerFromAFile, TakesNoTensorForACausalMaskBecauseOfItsNameAlone) {
  const SafetensorsFile file(path_of("w_q"));
  for (const Dims& shape : {Dims{0, 0}, Dims{4}, Dims{2, 3}, Dims{2, 2, 2}, Dims{}}) {
    std::vector<NamedTensor> tensors;
    for (const std::string& name : file.names()) tensors.push_back({name, file.at(name)});
    const Tensor mask(shape);
    tensors.push_back({std::string(kPrefix) + "mask", mask});
    const LoadedLayer loaded = MultiHeadAttention::load(tensors, {.heads = 4});
    EXPECT_THAT(loaded.found.left_over, ElementsAre("model.layers.0.attn.mask")) << to_string(shape);
    EXPECT_EQ(loaded.layer.config().context_length, 0) << to_string(shape);
  }
}

TEST(LayerFromAFile, IsChosenByAPartOfItsPrefix) {
  EXPECT_EQ(loaded("several", {.prefix = "encoder.1", .heads = 4}).found.family, NameFamily::wq);
  EXPECT_EQ(loaded("several", {.prefix = "encoder.0.attn", .heads = 4}).found.family, NameFamily::w_q);
  EXPECT_EQ(loaded("several", {.prefix = "encoder.0.attn.", .heads = 4}).found.family, NameFamily::w_q);
}

TEST(LayerFromAFile, IsRefusedWithWhatWouldWork) {
  const auto refusal = [](const std::string& name, const LoadOptions& options) {
    return refusal_of([&] { loaded(name, options); });
  };
  EXPECT_EQ(refusal("several", {.heads = 4}),
            "MultiHeadAttention::load: the file has 2 attention layers; choose one with prefix: \"encoder.0.attn.\", "
            "\"encoder.1.attn.\"");
  EXPECT_EQ(refusal("several", {.prefix = "decoder", .heads = 4}),
            "MultiHeadAttention::load: the file has no attention layer under \"decoder\"; its layers start with "
            "\"encoder.0.attn.\", \"encoder.1.attn.\"");
  EXPECT_THAT(refusal("w_q", {}), HasSubstr("give heads. Possible values: 1, 2, 3, 4, 6, 12"));
  EXPECT_THAT(refusal("w_q", {.heads = 5}), HasSubstr("possible values: 1, 2, 3, 4, 6, 12"));
  EXPECT_THAT(refusal("wq", {.heads = 4, .kv_heads = 4}), HasSubstr("which is 2 heads"));
  const Tensor other({3, 3});
  const std::vector<NamedTensor> none = {{"other", other}};
  EXPECT_THAT(refusal_of([&] { MultiHeadAttention::load(none, {.heads = 1}); }), HasSubstr("it has \"other\""));
  const std::vector<NamedTensor> part = {{"W_q.weight", other}, {"W_k.weight", other}, {"W_v.weight", other}};
  EXPECT_THAT(refusal_of([&] { MultiHeadAttention::load(part, {.heads = 1}); }),
              HasSubstr("has an incomplete attention layer under \"\": there is no \"W_o.weight\""));
}

TEST(LayerToAFile, RemembersItsHeads) {
  const TemporaryFolder folder;
  const MultiHeadAttention layer({.embed_size = 12, .heads = 6, .kv_heads = 2}, 3);
  layer.save(folder / "layer.safetensors");
  const LoadedLayer again = MultiHeadAttention::load(folder / "layer.safetensors", {});
  EXPECT_EQ(again.layer.config().heads, 6);
  EXPECT_EQ(again.layer.config().kv_heads, 2);
  for (std::size_t n = 0; n < layer.parameters().size(); ++n) {
    expect_same(again.layer.parameters()[n].value, layer.parameters()[n].value);
  }
}

TEST(LayerToAFile, WritesTorchsNamesPackedOrSeparate) {
  const MultiHeadAttention layer({.embed_size = 4, .heads = 2});
  const auto names = [&](const SaveOptions& options) {
    std::vector<std::string> list;
    for (const NamedTensor& tensor : layer.state_dict(options).tensors) list.push_back(tensor.name);
    return list;
  };
  EXPECT_THAT(names({}), ElementsAre("in_proj_weight", "in_proj_bias", "out_proj.weight", "out_proj.bias"));
  EXPECT_THAT(names({.packed = false}), ElementsAre("q_proj_weight", "k_proj_weight", "v_proj_weight", "in_proj_bias",
                                                    "out_proj.weight", "out_proj.bias"));
  EXPECT_THAT(names({.family = NameFamily::query, .prefix = "a"}),
              ElementsAre("a.self.query.weight", "a.self.key.weight", "a.self.value.weight", "a.self.query.bias",
                          "a.self.key.bias", "a.self.value.bias", "a.output.dense.weight", "a.output.dense.bias"));
  EXPECT_THAT(refusal_of([&] { names({.family = NameFamily::wq, .packed = true}); }), HasSubstr("in separate tensors"));
}

TEST(LayerToAFile, HasTheTypeThatIsAskedFor) {
  const MultiHeadAttention layer({.embed_size = 4, .heads = 2});
  const StateDict state = layer.state_dict({.dtype = DType::bf16});
  for (const NamedTensor& tensor : state.tensors) EXPECT_EQ(tensor.value.dtype(), DType::bf16) << tensor.name;
  EXPECT_EQ(MultiHeadAttention::load(state.tensors, {.heads = 2}).layer.config().dtype, DType::bf16);
}

TEST(LayersOfAFile, AreNoneWhereTheirTypeIsUnknown) {
  std::string header;
  for (int n = 0; n < 4; ++n) {
    header += std::string(n == 0 ? "{" : ",") + "\"W_" + "qkvo"[n] +
              ".weight\":{\"dtype\":\"F8_E4M3\",\"shape\":[2,2]," + "\"data_offsets\":[" + std::to_string(4 * n) + "," +
              std::to_string(4 * n + 4) + "]}";
  }
  header += '}';
  const std::string bytes = little<std::uint64_t>(header.size()) + header + std::string(16, '\0');
  const SafetensorsFile file(bytes_of(bytes), "f8");
  EXPECT_THAT(find_attention_layers(file), IsEmpty());
  EXPECT_THAT(refusal_of([&] { MultiHeadAttention::load(file, {.heads = 1}); }),
              HasSubstr("\"W_q.weight\" has an unsupported type or rank"));
}

TEST(LayersOfAFile, AreFoundInTheirOrder) {
  const std::vector<FoundLayer> layers = find_attention_layers(SafetensorsFile(path_of("several")));
  ASSERT_EQ(layers.size(), 2);
  EXPECT_EQ(layers[0].prefix, "encoder.0.attn.");
  EXPECT_EQ(layers[1].context_length, 7);
  EXPECT_THAT(layers[1].possible_heads(), ElementsAre(2, 4, 6, 12));
}

}  // namespace
}  // namespace rapt::test
