// The five notes on attention that this library started from. The code of each note was run in PyTorch
// (tests/data/make_notes.py lists the repairs that this required). The equivalent calls here must give the same output
// and the same weights.

#include <cmath>
#include <string>
#include <utility>

#include <gtest/gtest.h>

#include "rapt/attention.h"
#include "rapt/tensor.h"
#include "support/note_run.h"
#include "support/relative_error.h"

namespace rapt::test {
namespace {

// Every test runs in f64 and in f32.
class Notes : public ::testing::TestWithParam<DType> {
 protected:
  static NoteRun note1(const std::string& run) { return {"note1_packed_qkv", run, GetParam()}; }
  static NoteRun note2(const std::string& run) { return {"note2_mask_fill", run, GetParam()}; }
  static NoteRun note3(const std::string& run) { return {"note3_masked_fill", run, GetParam()}; }
  static NoteRun note4(const std::string& run) { return {"note4_split_head", run, GetParam()}; }
  static NoteRun note5(const std::string& run) { return {"note5_triu_mask", run, GetParam()}; }
};

INSTANTIATE_TEST_SUITE_P(In, Notes, ::testing::Values(DType::f64, DType::f32),
                         [](const auto& run) { return std::string(name_of(run.param)); });

// ---- Note 1: packed projections, batch_first, need_weights ---------------------------------------------------------

// qkv (B, L, 3E), the output of one linear layer -> causal attention over its three parts, without a copy.
Attended attend_packed(const Tensor& qkv, std::int64_t heads) {
  const std::int64_t size = qkv.size(2) / 3 / heads;
  const ConstTensorView parts = qkv.view().reshape({qkv.size(0), qkv.size(1), 3, heads, size}).permute({2, 0, 3, 1, 4});
  return attend(parts.select(0, 0), parts.select(0, 1), parts.select(0, 2), {.causal = true});
}

TEST_P(Notes, Note1PackedQkvPermutedIsThreeViews) {
  for (const char* name : {"packed", "packed_with_bias"}) {
    const NoteRun run = note1(name);
    const Attended attended = attend_packed(run.linear("qkv", run.tensor("x")), 2);
    run.expect("weights", attended.weights);
    run.expect("out", run.linear("proj", attended.combined()));
  }
}

// torch.nn.MultiheadAttention holds its three projections as one in_proj_weight.
Attended attend_module(const NoteRun& run, const ConstTensorView& x) {
  return attend_packed(run.linear_from("multihead_attn.in_proj_weight", "multihead_attn.in_proj_bias", x), 2);
}

Tensor module_output(const NoteRun& run, const Attended& attended) {
  return run.linear("proj", run.linear("multihead_attn.out_proj", attended.combined()));
}

TEST_P(Notes, Note1WeightsPerHeadAreTheWeights) {
  const NoteRun run = note1("per_head");
  const Attended attended = attend_module(run, run.tensor("x"));
  run.expect("weights", attended.weights);
  run.expect("out", module_output(run, attended));
}

TEST_P(Notes, Note1AveragedWeightsAreTheMeanOverHeads) {
  const NoteRun run = note1("averaged");
  const Tensor x = run.tensor("x");
  const Tensor qkv = run.linear_from("multihead_attn.in_proj_weight", "multihead_attn.in_proj_bias", x);
  const ConstTensorView parts = qkv.view().reshape({x.size(0), x.size(1), 3, 2, 4}).permute({2, 0, 3, 1, 4});
  Tensor out({x.size(0), 2, x.size(1), 4}, GetParam());
  Tensor mean({x.size(0), x.size(1), x.size(1)}, GetParam());
  attention({.out = out,
             .lse = {},
             .captures = {{.stage = Stage::dropped_weights,
                           .to = mean,
                           .of = {.mean_over_heads = true, .heads = {}, .queries = {}}}}},
            parts.select(0, 0), parts.select(0, 1), parts.select(0, 2), {.causal = true});
  run.expect("weights", mean);
  run.expect("out", run.linear("proj", run.linear("multihead_attn.out_proj", combine_heads_copy(out))));
}

TEST_P(Notes, Note1WithoutWeightsTheOutputIsTheSame) {
  const NoteRun run = note1("without_weights");
  EXPECT_FALSE(run.has("f64/weights"));
  const Tensor x = run.tensor("x");
  const Tensor qkv = run.linear_from("multihead_attn.in_proj_weight", "multihead_attn.in_proj_bias", x);
  const ConstTensorView parts = qkv.view().reshape({x.size(0), x.size(1), 3, 2, 4}).permute({2, 0, 3, 1, 4});
  const Tensor out = attention(parts.select(0, 0), parts.select(0, 1), parts.select(0, 2), {.causal = true});
  run.expect("out", run.linear("proj", run.linear("multihead_attn.out_proj", combine_heads_copy(out))));
  note1("averaged").expect("out", run.linear("proj", run.linear("multihead_attn.out_proj", combine_heads_copy(out))));
}

TEST_P(Notes, Note1TokensFirstIsBatchFirstTransposed) {
  const NoteRun batch_first = note1("batch_first");
  const Attended attended = attend_module(batch_first, batch_first.tensor("x"));
  batch_first.expect("weights", attended.weights);
  batch_first.expect("out", module_output(batch_first, attended));

  // (L, B, E) in, (L, B, E) out; the weights are (B, H, L, L) either way.
  const NoteRun tokens_first = note1("tokens_first");
  const Tensor x = tokens_first.tensor("x");
  const Attended transposed = attend_module(tokens_first, x.view().transpose(0, 1));
  tokens_first.expect("weights", transposed.weights);
  const Tensor out = module_output(tokens_first, transposed);
  tokens_first.expect("out", out.view().transpose(0, 1));
  EXPECT_EQ(relative_error(transposed.weights, attended.weights), 0.0);
}

// ---- Notes 2 and 3: separate projections, masked_fill(mask == 0, -1e9) ---------------------------------------------

// The class in both notes: project, split, attend, combine, project.
void expect_separate(const NoteRun& run, const Tensor& q, const Tensor& k, const Tensor& v, std::int64_t heads,
                     const AttentionOptions& options) {
  const Tensor projected_q = run.linear("W_q", q);
  const Tensor projected_k = run.linear("W_k", k);
  const Tensor projected_v = run.linear("W_v", v);
  const Attended attended = attend(split_heads(projected_q.view(), heads), split_heads(projected_k.view(), heads),
                                   split_heads(projected_v.view(), heads), options);
  run.expect("weights", attended.weights);
  run.expect("out", run.linear("W_o", attended.combined()));
}

TEST_P(Notes, Note2WithoutMask) {
  const NoteRun run = note2("no_mask");
  expect_separate(run, run.tensor("Q"), run.tensor("K"), run.tensor("V"), 3, {});
}

TEST_P(Notes, Note2FillsMaskOfEveryHeadWithMinus1e9) {
  const NoteRun run = note2("mask_of_every_head");
  const Tensor zero = is_zero(run.tensor("mask"));  // (B, H, L, L)
  expect_separate(run, run.tensor("Q"), run.tensor("K"), run.tensor("V"), 3, {.masks = {Mask::fill(zero, -1e9)}});
}

TEST_P(Notes, Note2RowFilledThroughoutAttendsEvenly) {
  const NoteRun run = note2("mask_of_every_head");
  const Tensor q = run.linear("W_q", run.tensor("Q"));
  const Tensor zero = is_zero(run.tensor("mask"));
  const Attended attended = attend(split_heads(q.view(), 3), split_heads(q.view(), 3), split_heads(q.view(), 3),
                                   {.masks = {Mask::fill(zero, -1e9)}});
  const Tensor weights = attended.weights.to(DType::f64);
  for (std::int64_t j = 0; j < 5; ++j) EXPECT_NEAR(weights.view().at<double>(1, 2, 3, j), 0.2, 1e-7);
}

TEST_P(Notes, Note2CausalFillIsCausal) {
  const NoteRun run = note2("causal");
  const Tensor zero = is_zero(run.tensor("mask"));  // (1, 1, L, L)
  // Every row sees its own key, so a score of -1e9 gets a weight of 0, and filling and hiding agree.
  expect_separate(run, run.tensor("Q"), run.tensor("K"), run.tensor("V"), 3, {.masks = {Mask::fill(zero, -1e9)}});
  expect_separate(run, run.tensor("Q"), run.tensor("K"), run.tensor("V"), 3, {.causal = true});
}

TEST_P(Notes, Note3WithoutMask) {
  const NoteRun run = note3("no_mask");
  expect_separate(run, run.tensor("query"), run.tensor("key"), run.tensor("value"), 2, {});
}

TEST_P(Notes, Note3CrossAttentionWithFewerQueries) {
  const NoteRun run = note3("cross");
  expect_separate(run, run.tensor("query"), run.tensor("key"), run.tensor("value"), 2, {});
}

TEST_P(Notes, Note3FillsMaskOfBatchRowsWithMinus1e9) {
  const NoteRun run = note3("mask_of_batch");
  const Tensor zero = is_zero(run.tensor("mask"));  // (B, 1, L, L)
  ASSERT_EQ(zero.shape(), Dims({2, 1, 5, 5}));
  expect_separate(run, run.tensor("query"), run.tensor("key"), run.tensor("value"), 2,
                  {.masks = {Mask::fill(zero, -1e9)}});
}

TEST_P(Notes, Note3MaskOfBLLNeedsItsReadingNamed) {
  // (B, L, L) against (B, H, L, L): PyTorch reads it as (1, H, L, L) where B happens to equal H. rapt rejects rank 3
  // and has a function for each interpretation.
  const NoteRun run = note3("mask_of_heads");
  const Tensor zero = is_zero(run.tensor("mask"));
  ASSERT_EQ(zero.shape(), Dims({2, 5, 5}));
  const Tensor q = run.tensor("query");
  EXPECT_THROW(expect_separate(run, q, q, q, 2, {.masks = {Mask::fill(zero, -1e9)}}), Error);

  const ConstTensorView of_heads = zero.view().unsqueeze(0);  // (1, H, L, L)
  expect_separate(run, q, run.tensor("key"), run.tensor("value"), 2, {.masks = {Mask::fill(of_heads, -1e9)}});
  const NoteRun meant = note3("mask_of_batch");
  const ConstTensorView of_batch = zero.view().unsqueeze(1);  // (B, 1, L, L), what the note's comment means
  expect_separate(meant, q, run.tensor("key"), run.tensor("value"), 2, {.masks = {Mask::fill(of_batch, -1e9)}});
}

TEST_P(Notes, Note3FillsMaskOfAllDimensionsWithMinus1e9) {
  const NoteRun run = note3("mask_of_all");
  const Tensor zero = is_zero(run.tensor("mask"));
  ASSERT_EQ(zero.shape(), Dims({2, 2, 5, 5}));
  expect_separate(run, run.tensor("query"), run.tensor("key"), run.tensor("value"), 2,
                  {.masks = {Mask::fill(zero, -1e9)}});
}

TEST_P(Notes, Note3SameParametersWithOneHeadOrFour) {
  for (const auto& [name, heads] : {std::pair{"one_head", 1}, std::pair{"four_heads", 4}}) {
    const NoteRun run = note3(name);
    const Tensor zero = is_zero(run.tensor("mask"));
    expect_separate(run, run.tensor("query"), run.tensor("key"), run.tensor("value"), heads,
                    {.masks = {Mask::fill(zero, -1e9)}});
  }
  for (const char* name : {"W_q.weight", "W_k.weight", "W_v.weight", "W_o.weight"}) {
    EXPECT_EQ(relative_error(note3("one_head").tensor(name), note3("four_heads").tensor(name)), 0.0) << name;
  }
}

// ---- Note 4: mask * -1e9, and why split_head needs its transpose ---------------------------------------------------

struct Projected {
  Tensor q;
  Tensor k;
  Tensor v;  // each (B, L, E)
};

Projected project4(const NoteRun& run) {
  const Tensor x = run.tensor("x");
  return {run.linear("q_linear", x), run.linear("k_linear", x), run.linear("v_linear", x)};
}

void expect_split(const NoteRun& run, const AttentionOptions& options) {
  const Projected p = project4(run);
  const Attended attended =
      attend(split_heads(p.q.view(), 2), split_heads(p.k.view(), 2), split_heads(p.v.view(), 2), options);
  run.expect("weights", attended.weights);
  run.expect("out", run.linear("o_linear", attended.combined()));
}

// mask * -1e9, in the run's type: (L, L).
Tensor times_minus_1e9(const Tensor& mask) {
  Tensor product = mask.to(DType::f64);
  for (double& value : product.values<double>()) value *= -1e9;
  return product.to(mask.dtype());
}

TEST_P(Notes, Note4WithoutMask) { expect_split(note4("no_mask"), {}); }

TEST_P(Notes, Note4AddsMaskTimesMinus1e9) {
  const NoteRun run = note4("mask_times_minus_1e9");
  const Tensor bias = times_minus_1e9(run.tensor("mask"));
  expect_split(run, {.masks = {Mask::add(bias)}});
}

TEST_P(Notes, Note4AddingMinus1e9ToEveryKeySwallowsTheScoreInFloatOnly) {
  const NoteRun run = note4("all_masked");
  const Tensor bias = times_minus_1e9(run.tensor("mask"));
  if (GetParam() == DType::f32) {
    expect_split(run, {.masks = {Mask::add(bias)}});  // attends evenly
    return;
  }
  // In f64 the same number is added to every score, which changes no weight, except for the digits lost to -1e9.
  const Projected p = project4(run);
  const auto weights = [&](const AttentionOptions& options) {
    return attend(split_heads(p.q.view(), 2), split_heads(p.k.view(), 2), split_heads(p.v.view(), 2), options).weights;
  };
  EXPECT_LT(relative_error(weights({.masks = {Mask::add(bias)}}), weights({})), 1e-6);
}

TEST_P(Notes, Note4WrongReshapeMixesTokensIntoHeads) {
  // The note's warning: reshape(B, H, L, D) without the transpose. rapt gives PyTorch's result for it, which differs
  // from that of the correct split with the same parameters.
  const NoteRun run = note4("wrong_split");
  const Projected p = project4(run);
  const Dims wrong = {p.q.size(0), 2, p.q.size(1), p.q.size(2) / 2};
  const Attended attended = attend(p.q.view().reshape(wrong), p.k.view().reshape(wrong), p.v.view().reshape(wrong));
  run.expect("weights", attended.weights);
  run.expect("out", run.linear("o_linear", attended.combined()));

  const Attended right = attend(split_heads(p.q.view(), 2), split_heads(p.k.view(), 2), split_heads(p.v.view(), 2));
  EXPECT_GT(relative_error(attended.weights, right.weights), 0.1);
  EXPECT_GT(relative_error(attended.memory, right.memory), 0.1);
}

// ---- Note 5: the plain function, triu(-inf) cut to the sequence, a slice of the heads ------------------------------

TEST_P(Notes, Note5PlainFunctionIsOneHead) {
  const NoteRun run = note5("attention");
  const Tensor q = run.tensor("q");  // (B, N, d_k)
  const Tensor k = run.tensor("k");
  const Tensor v = run.tensor("v");  // (B, N, d_v)
  const Attended attended = attend(q.view().unsqueeze(1), k.view().unsqueeze(1), v.view().unsqueeze(1));
  run.expect("weights", attended.weights.view().select(1, 0));
  run.expect("out", attended.combined());
}

TEST_P(Notes, Note5SelfAttentionIsTheSameTensorThreeTimes) {
  const NoteRun run = note5("self_attention");
  const Tensor x = run.tensor("x");
  const ConstTensorView one_head = x.view().unsqueeze(1);
  const Attended attended = attend(one_head, one_head, one_head);
  run.expect("weights", attended.weights.view().select(1, 0));
  run.expect("out", attended.combined());
}

TEST_P(Notes, Note5StoredTriangleOfMinusInfinityIsCutToTheSequence) {
  const NoteRun run = note5("masked");
  const Tensor q = run.tensor("q");
  const Tensor k = run.tensor("k");
  const Tensor v = run.tensor("v");
  const std::int64_t length = q.size(1);
  const Tensor stored = run.tensor("mask");  // (1, max_seq_len, max_seq_len)
  ASSERT_GT(stored.size(1), length);
  const ConstTensorView cut = stored.view().select(0, 0).slice(0, 0, length).slice(1, 0, length);  // no copy
  for (const AttentionOptions& options :
       {AttentionOptions{.masks = {Mask::add(cut)}}, AttentionOptions{.causal = true}}) {
    const Attended attended = attend(q.view().unsqueeze(1), k.view().unsqueeze(1), v.view().unsqueeze(1), options);
    run.expect("weights", attended.weights.view().select(1, 0));
    run.expect("out", attended.combined());
  }
}

// The module of note 5, or a slice of its heads.
Attended attend5(const NoteRun& run, std::int64_t heads, const AttentionOptions& options) {
  const Tensor q = run.linear("wq", run.tensor("q"));
  const Tensor k = run.linear("wk", run.tensor("k"));
  const Tensor v = run.linear("wv", run.tensor("v"));
  return attend(split_heads(q.view(), heads), split_heads(k.view(), heads), split_heads(v.view(), heads), options);
}

TEST_P(Notes, Note5Module) {
  const NoteRun run = note5("module");
  const Attended attended = attend5(run, 4, {});
  run.expect("weights", attended.weights);
  run.expect("out", run.linear("wo", attended.combined()));
}

TEST_P(Notes, Note5CausalModuleCutsItsBuffer) {
  const NoteRun run = note5("causal_module");
  const Tensor stored = run.tensor("mask");  // (1, 1, max_seq_len, max_seq_len)
  const Attended attended = attend5(run, 4, {.masks = {Mask::add(stored.view().slice(2, 0, 6).slice(3, 0, 6))}});
  run.expect("weights", attended.weights);
  run.expect("out", run.linear("wo", attended.combined()));
}

TEST_P(Notes, Note5SlicesOfTheHeadsAddUpToTheWhole) {
  const NoteRun whole = note5("causal_module");
  Tensor sum({2, 6, 8}, DType::f64);
  for (int part = 0; part < 2; ++part) {
    const NoteRun run = note5("slice" + std::to_string(part));
    const Attended attended = attend5(run, 2, {.causal = true});
    run.expect("weights", attended.weights);
    const Tensor out = run.linear("wo", attended.combined());
    run.expect("out", out);
    const Tensor added = out.to(DType::f64);
    for (std::size_t n = 0; n < sum.values<double>().size(); ++n) {
      sum.values<double>()[n] += added.values<double>()[n];
    }
  }
  whole.expect("out", sum);
}

}  // namespace
}  // namespace rapt::test
