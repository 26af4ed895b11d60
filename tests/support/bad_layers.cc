#include "support/bad_layers.h"

#include <cmath>

#include <gtest/gtest.h>

#include "support/expect_error.h"

namespace rapt::test {

using Config = MultiHeadAttentionConfig;

// clang-format off
const std::vector<BadConfig>& bad_configs() {
  static const std::vector<BadConfig> configs = {
    {"NoEmbedSize", [](Config& c) { c.embed_size = 0; }, "MultiHeadAttention: embed_size is 0; it must be positive"},
    {"NoHeads", [](Config& c) { c.heads = 0; }, "MultiHeadAttention: heads is 0; it must be positive"},
    {"NegativeHeads", [](Config& c) { c.heads = -2; }, "MultiHeadAttention: heads is -2; it must be positive"},
    {"NegativeKvHeads", [](Config& c) { c.kv_heads = -1; }, "MultiHeadAttention: kv_heads is -1; it must be positive, or 0 for its default"},
    {"NegativeHeadSize", [](Config& c) { c.head_size = -4; }, "MultiHeadAttention: head_size is -4; it must be positive, or 0 for its default"},
    {"NegativeKeySize", [](Config& c) { c.key_size = -4; }, "MultiHeadAttention: key_size is -4; it must be positive, or 0 for its default"},
    {"NegativeValueSize", [](Config& c) { c.value_size = -4; }, "MultiHeadAttention: value_size is -4; it must be positive, or 0 for its default"},
    {"NegativeOutputSize", [](Config& c) { c.output_size = -4; }, "MultiHeadAttention: output_size is -4; it must be positive, or 0 for its default"},
    {"NegativeContext", [](Config& c) { c.context_length = -1; }, "MultiHeadAttention: context_length is -1; it must be positive, or 0 for its default"},
    {"HeadsDoNotDivide", [](Config& c) { c.heads = 5; }, "MultiHeadAttention: embed_size 8 is not a multiple of heads 5; give head_size, or a number of heads that divides embed_size"},
    {"KvHeadsDoNotDivide", [](Config& c) { c.kv_heads = 3; }, "MultiHeadAttention: heads 4 is not a multiple of kv_heads 3; each kv head must serve the same number of query heads"},
    {"DropoutTooLarge", [](Config& c) { c.dropout = 1.5; }, "MultiHeadAttention: dropout is 1.5; it must be between 0 and 1"},
    {"DropoutNan", [](Config& c) { c.dropout = std::nan(""); }, "MultiHeadAttention: dropout is nan; it must be between 0 and 1"},
    {"OutputDropoutNegative", [](Config& c) { c.output_dropout = -0.1; }, "MultiHeadAttention: output_dropout is -0.1; it must be between 0 and 1"},
    {"BoolParameters", [](Config& c) { c.dtype = DType::boolean; }, "MultiHeadAttention: dtype is bool; it must be f32, bf16, f16 or f64"},
    {"NoSlices", [](Config& c) { c.slice.count = 0; }, "MultiHeadAttention: slice.count is 0; it must be positive"},
    {"SliceOutside", [](Config& c) { c.slice = {2, 2}; }, "MultiHeadAttention: slice.index is 2; it must be at least 0 and less than slice.count, 2"},
    {"SliceNegative", [](Config& c) { c.slice = {-1, 2}; }, "MultiHeadAttention: slice.index is -1; it must be at least 0 and less than slice.count, 2"},
    {"SlicesDoNotDivideHeads", [](Config& c) { c.slice = {0, 3}; }, "MultiHeadAttention: slice.count 3 does not divide heads 4; all slices must have the same number of heads"},
    {"SlicesDoNotDivideKvHeads", [](Config& c) { c.slice = {0, 4}; }, "MultiHeadAttention: slice.count 4 does not divide kv_heads 2; all slices must have the same number of kv heads"},
    {"OddHeadsCannotTurn", [](Config& c) { c.head_size = 3, c.rotary = RotaryOptions{}; }, "rotary: "},
  };
  return configs;
}
// clang-format on

// clang-format off
const std::vector<BadLayerCall>& bad_layer_calls() {
  static const std::vector<BadLayerCall> calls = {
    {"QueryMissing", [](LayerCall& c) { c.query = {}; }, "MultiHeadAttention::forward: query is missing; give a tensor"},
    {"QueryRank4", [](LayerCall& c) { c.query = c.shaped({2, 4, 3, 2}); }, "MultiHeadAttention::forward: query has shape (2, 4, 3, 2); it must be (B, L, E), or (L, E) without a batch"},
    {"QueryRank1", [](LayerCall& c) { c.config.batch_first = false, c.query = c.shaped({8}); }, "MultiHeadAttention::forward: query has shape (8,); it must be (L, B, E), or (L, E) without a batch"},
    {"QuerySize", [](LayerCall& c) { c.query = c.shaped({2, 3, 7}); }, "MultiHeadAttention::forward: query has tokens of 7 numbers, the layer has embed_size = 8; they must be equal"},
    {"QueryBool", [](LayerCall& c) { c.query = c.shaped({2, 3, 8}, DType::boolean); }, "MultiHeadAttention::forward: query is bool; it must be f32, bf16 or f16"},
    {"QueryF64", [](LayerCall& c) { c.query = c.shaped({2, 3, 8}, DType::f64); }, "MultiHeadAttention::forward: query is f64; it must be f32, bf16 or f16"},
    {"QueryF32ForF64", [](LayerCall& c) { c.config.dtype = DType::f64; }, "MultiHeadAttention::forward: query is f32, the layer's parameters are f64; f64 does not mix with other types"},
    {"QueryWithoutMemory", [](LayerCall& c) { c.query = ConstTensorView(nullptr, DType::f32, {2, 3, 8}); }, "MultiHeadAttention::forward: query of shape (2, 3, 8) has no memory: its pointer is null"},
    {"KeySize", [](LayerCall& c) { c.key = c.shaped({2, 5, 6}); }, "MultiHeadAttention::forward: key has tokens of 6 numbers, the layer has key_size = 8; they must be equal"},
    {"ValueSize", [](LayerCall& c) { c.value = c.shaped({2, 5, 6}); }, "MultiHeadAttention::forward: value has tokens of 6 numbers, the layer has value_size = 8; they must be equal"},
    {"SelfWithKeysOfTheirOwnSize", [](LayerCall& c) { c.config.key_size = 5, c.key = {}; }, "MultiHeadAttention::forward: query, which is the key too, has tokens of 8 numbers, the layer has key_size = 5; they must be equal"},
    {"KeyIsValueOfAnotherSize", [](LayerCall& c) { c.config.value_size = 5; }, "MultiHeadAttention::forward: key, which is the value too, has tokens of 8 numbers, the layer has value_size = 5; they must be equal"},
    {"ValueWithoutKey", [](LayerCall& c) { c.key = {}, c.value = c.memory; }, "MultiHeadAttention::forward: value is given without key; give both, or neither for self-attention"},
    {"KeyWithoutBatch", [](LayerCall& c) { c.key = c.shaped({5, 8}); }, "MultiHeadAttention::forward: key has shape (5, 8), query has (2, 3, 8); either all inputs have a batch dimension, or none"},
    {"ValueWithoutBatch", [](LayerCall& c) { c.value = c.shaped({5, 8}); }, "MultiHeadAttention::forward: value has shape (5, 8), query has (2, 3, 8); either all inputs have a batch dimension, or none"},
    {"KeyBatch", [](LayerCall& c) { c.key = c.shaped({3, 5, 8}); }, "MultiHeadAttention::forward: key has batch size 3, query has 2; they must be equal"},
    {"KeyBatchInTheOtherOrder", [](LayerCall& c) { c.config.batch_first = false; }, "MultiHeadAttention::forward: key has batch size 5, query has 3; they must be equal (batch_first is off: inputs are (L, B, E))"},
    {"ValueLength", [](LayerCall& c) { c.value = c.shaped({2, 4, 8}); }, "MultiHeadAttention::forward: value has shape (2, 4, 8), key has (2, 5, 8); they must have the same number of tokens and batch rows"},
    {"OutMissing", [](LayerCall& c) { c.outputs.out = {}; }, "MultiHeadAttention::forward: out is missing; give a tensor"},
    {"OutShape", [](LayerCall& c) { c.outputs.out = c.shaped({2, 3, 6}); }, "MultiHeadAttention::forward: out has shape (2, 3, 6); it must be (B, Lq, O) = (2, 3, 8)"},
    {"OutBool", [](LayerCall& c) { c.outputs.out = c.shaped({2, 3, 8}, DType::boolean); }, "MultiHeadAttention::forward: out is bool; it must be f32, bf16 or f16"},
    {"OutOverlapsItself", [](LayerCall& c) { c.outputs.out = c.shaped({2, 1, 8}).expand({2, 3, 8}); }, "MultiHeadAttention::forward: out has strides (8, 0, 1) for shape (2, 3, 8), so that several elements share an address; an output must not overlap itself"},
    {"OutIsQuery", [](LayerCall& c) { c.outputs.out = c.x; }, "MultiHeadAttention::forward: out overlaps query; it needs separate memory"},
    {"OutEndsInKey", [](LayerCall& c) { c.key = TensorView(c.spare.view().data_as<float>() + 47, {2, 5, 8}), c.outputs.out = c.shaped({2, 3, 8}); }, "MultiHeadAttention::forward: out overlaps key; it needs separate memory"},
    {"WeightsInOut", [](LayerCall& c) { c.outputs.out = TensorView(c.spare.view().data_as<float>() + 29, {2, 3, 8}), c.outputs.weights = c.shaped({2, 3, 5}); }, "MultiHeadAttention::forward: weights overlaps out; it needs separate memory"},
    {"WeightsWithoutRoom", [](LayerCall& c) { c.outputs.weights = {}; }, "MultiHeadAttention::forward: options.weights requests weights, but outputs.weights is undefined"},
    {"WeightsNotAskedFor", [](LayerCall& c) { c.options.weights = ReturnWeights::none; }, "MultiHeadAttention::forward: outputs.weights is given, but options.weights is none"},
    {"WeightsOfMean", [](LayerCall& c) { c.outputs.weights = c.shaped({2, 4, 3, 5}); }, "MultiHeadAttention::forward: weights has shape (2, 4, 3, 5); it must be (B, Lq, Lk) = (2, 3, 5)"},
    {"WeightsOfEveryHead", [](LayerCall& c) { c.options.weights = ReturnWeights::per_head; }, "MultiHeadAttention::forward: weights has shape (2, 3, 5); it must be (B, Hq, Lq, Lk) = (2, 4, 3, 5)"},
    {"WeightsBf16", [](LayerCall& c) { c.outputs.weights = c.shaped({2, 3, 5}, DType::bf16); }, "MultiHeadAttention::forward: weights is bf16; it must be f32"},
    {"LseShape", [](LayerCall& c) { c.outputs.lse = c.shaped({2, 3, 4}); }, "MultiHeadAttention::forward: lse has shape (2, 3, 4); it must be (B, Hq, Lq) = (2, 4, 3)"},
    {"LseF64", [](LayerCall& c) { c.outputs.lse = c.shaped({2, 4, 3}, DType::f64); }, "MultiHeadAttention::forward: lse is f64; it must be f32"},
    {"CaptureMissing", [](LayerCall& c) { c.outputs.captures = {{}}; }, "MultiHeadAttention::forward: captures[0].to is missing; give a tensor"},
    {"CaptureShape", [](LayerCall& c) { c.outputs.captures = {{Stage::raw, c.shaped({2, 3, 5})}}; }, "MultiHeadAttention::forward: captures[0].to has shape (2, 3, 5); it must be (B, heads, queries, Lk) = (2, 4, 3, 5)"},
    {"CaptureOfAMean", [](LayerCall& c) { c.outputs.captures = {{Stage::raw, c.shaped({2, 4, 3, 5}), {.mean_over_heads = true}}}; }, "MultiHeadAttention::forward: captures[0].to has shape (2, 4, 3, 5); it must be (B, queries, Lk) = (2, 3, 5)"},
    {"CaptureOfNoHead", [](LayerCall& c) { c.outputs.captures = {{Stage::raw, c.shaped({2, 1, 3, 5}), {.heads = {4}}}}; }, "MultiHeadAttention::forward: captures[0].of.heads "},
    {"CaptureBf16", [](LayerCall& c) { c.outputs.captures = {{Stage::raw, c.shaped({2, 4, 3, 5}, DType::bf16)}}; }, "MultiHeadAttention::forward: captures[0].to is bf16; it must be f32"},
    {"MaskRank3", [](LayerCall& c) { c.options.attention.masks = {Mask::drop(c.shaped({8, 3, 5}, DType::boolean))}; }, "MultiHeadAttention::forward: attention.masks[0] has shape (8, 3, 5), which is ambiguous; use mask_of_batch for (B, Lq, Lk) or mask_of_heads for PyTorch's (B·Hq, Lq, Lk)"},
    {"MaskShape", [](LayerCall& c) { c.options.attention.masks = {Mask::drop(c.shaped({3, 4}, DType::boolean))}; }, "MultiHeadAttention::forward: masks[0] has shape "},
    {"DropoutInTheCall", [](LayerCall& c) { c.options.attention.dropout.rate = 0.1; }, "MultiHeadAttention::forward: attention.dropout.rate is 0.1; the layer's rate is set in config.dropout"},
    {"WorkspaceOfAttention", [](LayerCall& c) { c.options.attention.workspace = c.bytes; }, "MultiHeadAttention::forward: attention.workspace is given; a layer takes its workspace in LayerOptions::workspace"},
    {"SlopesForOneHead", [](LayerCall& c) { c.options.attention.alibi_slopes = {0.5}; }, "MultiHeadAttention::forward: attention.alibi_slopes has 1 values; it must have one for each of the 4 heads"},
    {"SinksForTwoHeads", [](LayerCall& c) { c.options.attention.sinks = c.shaped({2}); }, "MultiHeadAttention::forward: attention.sinks has shape (2,); it must be (Hq) = (4)"},
    {"NegativePosition", [](LayerCall& c) { c.options.position = -1; }, "MultiHeadAttention::forward: position is -1; it must be at least 0"},
    {"WindowWithLearnedKey", [](LayerCall& c) { c.config.add_bias_kv = true, c.options.attention.window.left = 2; }, "MultiHeadAttention::forward: attention.window cannot be combined with add_bias_kv: the added key has no position"},
    {"SlopesWithZeroKey", [](LayerCall& c) { c.config.add_zero_attention = true, c.options.attention.alibi_slopes = {1, 1, 1, 1}; }, "MultiHeadAttention::forward: attention.alibi_slopes cannot be combined with add_zero_attention: the added key has no position"},
    {"PackedWithLearnedKey", [](LayerCall& c) { c.config.add_bias_kv = true, c.options.attention.packed = {{0, 3}, {0, 5}}; }, "MultiHeadAttention::forward: attention.packed cannot be combined with add_bias_kv: give the sequences as batch rows"},
    {"LongerThanTheStoredMask", [](LayerCall& c) { c.config.context_length = 4; }, "MultiHeadAttention::forward: the sequence has 5 tokens, the stored causal mask is for 4; shorten the sequence, or make the layer with a larger context_length"},
    {"SequencesWithoutCache", [](LayerCall& c) { static const std::int64_t ids[] = {0, 1}; c.options.sequences = ids; }, "MultiHeadAttention::forward: sequences are given without a cache; they are ids of sequences in a cache"},
    {"CausalWithoutAlignment", [](LayerCall& c) { c.options.attention.causal = true; }, "MultiHeadAttention::forward: causal, "},
    {"NegativeThreads", [](LayerCall& c) { c.options.attention.threads = -1; }, "MultiHeadAttention::forward: attention.threads is -1; it must be positive, or 0 for all"},
  };
  return calls;
}
// clang-format on

void expect_refusal(const BadLayerCall& bad, const std::function<std::string(LayerCall&)>& attempt) {
  LayerCall call;
  for (float& value : call.out.values<float>()) value = 7.0F;
  for (float& value : call.weights.values<float>()) value = 7.0F;
  bad.spoil(call);
  expect_words(bad.message, attempt(call));
  for (const float value : call.out.values<float>()) ASSERT_EQ(value, 7.0F) << "something was written";
  for (const float value : call.weights.values<float>()) ASSERT_EQ(value, 7.0F) << "something was written";
}

}  // namespace rapt::test
