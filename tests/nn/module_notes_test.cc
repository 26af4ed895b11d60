// The classes of the five notes as MultiHeadAttention: their parameters, their masks in their own form, and PyTorch's
// results (tests/data/make_notes.py).

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "rapt/multi_head_attention.h"
#include "support/note_run.h"

namespace rapt::test {
namespace {

class NotesModule : public ::testing::TestWithParam<DType> {
 protected:
  static NoteRun note(const char* file, const std::string& run) { return {file, run, GetParam()}; }
};

INSTANTIATE_TEST_SUITE_P(In, NotesModule, ::testing::Values(DType::f64, DType::f32),
                         [](const auto& run) { return std::string(name_of(run.param)); });

// Sets a parameter of the layer from one or several parameters of a note, concatenated along the rows.
void set_from(MultiHeadAttention& layer, const NoteRun& run, const char* name, const std::vector<std::string>& parts) {
  std::vector<Tensor> tensors;
  std::int64_t rows = 0;
  for (const std::string& part : parts) {
    if (!run.has(part)) return;  // a layer without biases
    tensors.push_back(run.tensor(part));
    rows += tensors.back().size(0);
  }
  Dims shape = tensors[0].shape();
  shape[0] = rows;
  Tensor joined(shape, tensors[0].dtype());
  rows = 0;
  for (const Tensor& tensor : tensors) {
    copy(tensor, joined.view().slice(0, rows, rows + tensor.size(0)));
    rows += tensor.size(0);
  }
  layer.set_parameter(name, joined);
}

// A layer with the parameters of a note's linear layers, whose names are q, k, v and o.
MultiHeadAttention layer_from(const NoteRun& run, const MultiHeadAttentionConfig& config, const std::string& q,
                              const std::string& k, const std::string& v, const std::string& o) {
  MultiHeadAttentionConfig complete = config;
  complete.batch_first = true;
  complete.bias = run.has(q + ".bias");
  complete.output_bias = run.has(o + ".bias");
  complete.dtype = run.tensor(q + ".weight").dtype();
  MultiHeadAttention layer(complete);
  set_from(layer, run, "in_proj_weight", {q + ".weight", k + ".weight", v + ".weight"});
  set_from(layer, run, "in_proj_bias", {q + ".bias", k + ".bias", v + ".bias"});
  set_from(layer, run, "out_proj.weight", {o + ".weight"});
  set_from(layer, run, "out_proj.bias", {o + ".bias"});
  return layer;
}

LayerOptions with(const AttentionOptions& attention, ReturnWeights weights = ReturnWeights::per_head) {
  return {.attention = attention, .weights = weights};
}

void expect(const NoteRun& run, const LayerResult& result) {
  run.expect("weights", result.weights);
  run.expect("out", result.out);
}

TEST_P(NotesModule, Note1PackedQkvWithItsOwnSizes) {
  for (const char* name : {"packed", "packed_with_bias"}) {
    const NoteRun run = note("note1_packed_qkv", name);
    MultiHeadAttention layer({.embed_size = 8,  // the note's d_in
                              .heads = 2,
                              .head_size = 4,  // d_out / heads
                              .output_size = 8,
                              .bias = run.has("qkv.bias"),
                              .output_bias = true,
                              .batch_first = true,
                              .context_length = 7,
                              .rotary = {},
                              .slice = {},
                              .dtype = GetParam()});
    set_from(layer, run, "in_proj_weight", {"qkv.weight"});
    set_from(layer, run, "in_proj_bias", {"qkv.bias"});
    set_from(layer, run, "out_proj.weight", {"proj.weight"});
    set_from(layer, run, "out_proj.bias", {"proj.bias"});
    expect(run, layer.forward(run.tensor("x"), with({})));
  }
}

TEST_P(NotesModule, Note1PyTorchsOwnClass) {
  struct Kind {
    const char* name;
    bool bias, batch_first;
    ReturnWeights weights;
  };
  for (const Kind& kind :
       {Kind{"averaged", false, true, ReturnWeights::mean}, Kind{"per_head", false, true, ReturnWeights::per_head},
        Kind{"without_weights", false, true, ReturnWeights::none},
        Kind{"batch_first", true, true, ReturnWeights::per_head},
        Kind{"tokens_first", true, false, ReturnWeights::per_head}}) {
    SCOPED_TRACE(kind.name);
    const NoteRun run = note("note1_packed_qkv", kind.name);
    MultiHeadAttention layer({.embed_size = 8,
                              .heads = 2,
                              .bias = kind.bias,
                              .output_bias = {},
                              .batch_first = kind.batch_first,
                              .rotary = {},
                              .slice = {},
                              .dtype = GetParam()});
    for (const NamedTensor& parameter : layer.parameters()) {
      layer.set_parameter(parameter.name, run.tensor("multihead_attn." + parameter.name));
    }
    const LayerResult result = layer.forward(run.tensor("x"), with({.causal = true}, kind.weights));
    run.expect("out", run.linear("proj", result.out));
    EXPECT_EQ(run.has("f64/weights"), kind.weights != ReturnWeights::none);
    if (kind.weights != ReturnWeights::none) run.expect("weights", result.weights);
  }
}

MultiHeadAttention layer2(const NoteRun& run) {
  return layer_from(run, {.embed_size = 12, .heads = 3}, "W_q", "W_k", "W_v", "W_o");
}

TEST_P(NotesModule, Note2FillsWhereItsMaskIsZero) {
  for (const char* name : {"no_mask", "mask_of_every_head", "causal"}) {
    const NoteRun run = note("note2_mask_fill", name);
    const Tensor zero = run.has("mask") ? is_zero(run.tensor("mask")) : Tensor();
    AttentionOptions options;
    if (run.has("mask")) options.masks = {Mask::fill(zero, -1e9)};
    expect(run, layer2(run).forward(run.tensor("Q"), run.tensor("K"), run.tensor("V"), with(options)));
  }
}

TEST_P(NotesModule, Note3FillsWhereItsMaskIsZeroInEveryShape) {
  for (const char* name : {"no_mask", "cross", "mask_of_batch", "mask_of_all", "one_head", "four_heads"}) {
    SCOPED_TRACE(name);
    const NoteRun run = note("note3_masked_fill", name);
    const std::int64_t heads = name == std::string("one_head") ? 1 : name == std::string("four_heads") ? 4 : 2;
    const MultiHeadAttention layer =
        layer_from(run, {.embed_size = 8, .heads = heads, .dropout = 0.1}, "W_q", "W_k", "W_v", "W_o");
    const Tensor zero = run.has("mask") ? is_zero(run.tensor("mask")) : Tensor();
    AttentionOptions options;
    if (run.has("mask")) options.masks = {Mask::fill(zero, -1e9)};
    expect(run, layer.forward(run.tensor("query"), run.tensor("key"), run.tensor("value"), with(options)));
  }
}

TEST_P(NotesModule, Note3MaskOfThreeDimensionsIsTakenByName) {
  const NoteRun as_heads = note("note3_masked_fill", "mask_of_heads");
  const NoteRun as_batch = note("note3_masked_fill", "mask_of_batch");
  const Tensor zero = is_zero(as_heads.tensor("mask"));  // (2, L, L), and there are two batch rows and two heads
  const MultiHeadAttention layer = layer_from(as_heads, {.embed_size = 8, .heads = 2}, "W_q", "W_k", "W_v", "W_o");
  const Tensor query = as_heads.tensor("query"), key = as_heads.tensor("key"), value = as_heads.tensor("value");
  const auto forward = [&](const ConstTensorView& mask) {
    return layer.forward(query, key, value, with({.masks = {Mask::fill(mask, -1e9)}}));
  };
  EXPECT_THROW(forward(zero), Error);
  expect(as_batch, forward(mask_of_batch(zero)));
  expect(as_heads, forward(mask_of_heads(zero, 2)));  // (1·2, L, L): every batch row has the same masks of the heads
}

TEST_P(NotesModule, Note4AddsItsMaskTimesMinus1e9) {
  for (const char* name : {"no_mask", "mask_times_minus_1e9", "all_masked"}) {
    SCOPED_TRACE(name);
    const NoteRun run = note("note4_split_head", name);
    if (name == std::string("all_masked") && GetParam() == DType::f64) continue;  // has no f64 result
    const MultiHeadAttention layer =
        layer_from(run, {.embed_size = 8, .heads = 2}, "q_linear", "k_linear", "v_linear", "o_linear");
    AttentionOptions options;
    Tensor bias;
    if (run.has("mask")) {
      bias = run.tensor("mask").to(DType::f64);
      for (double& value : bias.values<double>()) value *= -1e9;
      bias = bias.to(GetParam());
      options.masks = {Mask::add(bias)};
    }
    expect(run, layer.forward(run.tensor("x"), with(options)));
  }
}

TEST_P(NotesModule, Note5StoredMaskIsCutToTheSequence) {
  const NoteRun plain = note("note5_triu_mask", "module");
  const NoteRun causal = note("note5_triu_mask", "causal_module");
  const auto forward = [&](const NoteRun& run, std::int64_t context, const AttentionOptions& options) {
    return layer_from(run, {.embed_size = 8, .heads = 4, .context_length = context}, "wq", "wk", "wv", "wo")
        .forward(run.tensor("q"), run.tensor("k"), run.tensor("v"), with(options));
  };
  expect(plain, forward(plain, 0, {}));
  expect(causal, forward(causal, 9, {}));
  const Tensor stored = causal.tensor("mask");  // (1, 1, 9, 9), -inf above the diagonal
  expect(causal, forward(causal, 0, {.masks = {Mask::add(stored.view().slice(2, 0, 6).slice(3, 0, 6))}}));
  EXPECT_THROW(forward(causal, 5, {}), Error);
}

TEST_P(NotesModule, Note5SlicesOfTheHeads) {
  const NoteRun whole = note("note5_triu_mask", "causal_module");
  const MultiHeadAttention layer =
      layer_from(whole, {.embed_size = 8, .heads = 4, .context_length = 9}, "wq", "wk", "wv", "wo");
  for (int part = 0; part < 2; ++part) {
    const NoteRun run = note("note5_triu_mask", "slice" + std::to_string(part));
    expect(run, layer.slice(part, 2).forward(run.tensor("q"), with({})));
  }
}

}  // namespace
}  // namespace rapt::test
