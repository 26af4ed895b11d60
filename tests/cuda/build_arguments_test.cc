// The arguments of kernels, built from problems on a machine without a GPU. The emulated kernels (plain_test.cc) show
// that the arguments of every case are correct. These tests cover the contents of lists, the two places where they are
// stored, and numbers that do not fit into 32 bits.
#include "cuda/build_arguments.h"

#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "cases/list.h"
#include "support/cuda/cuda_call.h"

namespace rapt::cuda {
namespace {

using cases::Case;
using cases::CaseSpec;

void expect_same_tensor(const DeviceTensor& got, const ConstTensorView& view) {
  if (!view.defined()) {
    EXPECT_EQ(got.data, nullptr);
    return;
  }
  EXPECT_EQ(got.data, view.data());
  EXPECT_EQ(got.dtype, view.dtype());
  const std::int64_t strides[] = {got.batch, got.head, got.row, got.element};
  for (int dim = 0; dim < view.rank(); ++dim) EXPECT_EQ(strides[dim], view.stride(dim)) << "dimension " << dim;
}

// Expects that every list in the arguments has the contents of the problem's list.
void expect_lists(const Arguments& got, const AttentionProblem& problem) {
  ASSERT_EQ(got.sequence_count, std::ssize(problem.sequences));
  for (std::int32_t n = 0; n < got.sequence_count; ++n) {
    const SequenceSpan& wanted = problem.sequences[static_cast<std::size_t>(n)];
    const Sequence& sequence = got.sequence(n);
    EXPECT_EQ(sequence.batch, wanted.batch);
    EXPECT_EQ(sequence.index, wanted.index);
    EXPECT_EQ(sequence.query_begin, wanted.query_begin);
    EXPECT_EQ(sequence.query_count, wanted.query_count);
    EXPECT_EQ(sequence.key_begin, wanted.key_begin);
    EXPECT_EQ(sequence.key_count, wanted.key_count);
    EXPECT_EQ(sequence.offset, wanted.offset);
  }
  ASSERT_EQ(got.mask_count, std::ssize(problem.masks));
  for (std::int32_t n = 0; n < got.mask_count; ++n) {
    const Mask& wanted = problem.masks[static_cast<std::size_t>(n)];
    expect_same_tensor(got.mask(n).view, wanted.view);
    EXPECT_EQ(static_cast<int>(got.mask(n).kind), static_cast<int>(wanted.kind));
    EXPECT_EQ(got.mask(n).value, wanted.value);
  }
  for (std::size_t h = 0; h < problem.alibi_slopes.size(); ++h) {
    EXPECT_EQ(got.slope(static_cast<std::int32_t>(h)), static_cast<float>(problem.alibi_slopes[h]));
  }
  for (std::size_t n = 0; n < problem.pages.table.size(); ++n) {
    EXPECT_EQ(got.page(static_cast<std::int64_t>(n)), problem.pages.table[n]);
  }
}

TEST(CudaArguments, SayWhatEveryCaseSays) {
  std::vector<CaseSpec> list = cases::all_cases();
  for (std::uint64_t seed = 1; seed <= 200; ++seed) list.push_back(cases::random_case(seed));
  int in_workspace = 0;
  for (const CaseSpec& spec : list) {
    if (spec.query_type == DType::f64) continue;
    SCOPED_TRACE(describe(spec));
    const Case test(spec);
    const test::CudaCall call(test);
    EXPECT_EQ(cannot(call.problem()), "");
    const Arguments& arguments = call.arguments();
    expect_lists(arguments, call.problem());
    in_workspace += arguments.lists.in_workspace != nullptr ? 1 : 0;
    expect_same_tensor(arguments.query, test.query);
    expect_same_tensor(arguments.key, test.key);
    expect_same_tensor(arguments.value, test.value);
    expect_same_tensor(arguments.key_scales, test.options.key_scales);
    expect_same_tensor(arguments.value_scales, test.options.value_scales);
    expect_same_tensor(arguments.out, call.problem().outputs.out);
    if (spec.query_heads > 0) {
      EXPECT_EQ(arguments.group * arguments.kv_heads, arguments.query_heads);
    }
    EXPECT_EQ(arguments.keys, spec.keys);
    EXPECT_LE(arguments.page_shift, 30);
  }
  EXPECT_LT(in_workspace, std::ssize(list) / 4) << "most lists are short";
}

TEST(CudaArguments, LongListsGoThroughTheWorkspace) {
  constexpr std::size_t kSequence = sizeof(Sequence);
  for (const std::int64_t batch : {std::int64_t{1}, std::int64_t{Lists::kInline / kSequence},
                                   std::int64_t{Lists::kInline / kSequence + 1}, std::int64_t{1000}}) {
    CaseSpec spec;
    spec.batch = batch, spec.queries = spec.keys = 2;
    spec.key_lengths.assign(static_cast<std::size_t>(batch), 1);
    const Case test(spec);
    const test::CudaCall call(test);
    const bool is_long = static_cast<std::size_t>(batch) * kSequence > Lists::kInline;
    EXPECT_EQ(list_bytes(call.problem()), is_long ? static_cast<std::size_t>(batch) * kSequence : 0);
    EXPECT_EQ(call.arguments().lists.in_workspace != nullptr, is_long);
    expect_lists(call.arguments(), call.problem());
  }
}

TEST(CudaArguments, AListThatIsFreedAfterwardsIsNotReadAgain) {
  CaseSpec spec;
  spec.key_lengths = {3, 5};
  Case test(spec);
  const test::CudaCall call(test);
  const Arguments arguments = call.arguments();
  test.options.key_lengths.assign(2, 0);
  EXPECT_EQ(arguments.sequence(0).key_count, 3);
  EXPECT_EQ(arguments.sequence(1).key_count, 5);
}

TEST(CudaArguments, SelectionsHaveTheirInverse) {
  const Tensor q({1, 4, 6, 8}), k({1, 4, 5, 8}), dweights({1, 3, 2, 5});
  BackwardProblem problem;
  problem.query = q, problem.key = problem.value = k;
  problem.query_heads = problem.kv_heads = 4, problem.key_length = 5;
  problem.head_size = problem.value_size = 8;
  std::vector<SequenceSpan> sequences = {{.query_count = 6, .key_count = 5}};
  problem.sequences = sequences;
  const std::vector<WeightsGradient> given = {{Stage::weights, dweights, {.heads = {2, 0, 2}, .queries = {5, 1}}}};
  problem.upstream.dweights = given;
  const BackwardCall call = call_of(problem);
  ASSERT_EQ(call.gradients.weights_count, 1);
  const std::byte* block = call.arguments.lists.block();
  Selected selected;
  std::memcpy(&selected, block + call.gradients.weights, sizeof selected);
  const auto list = [&](std::uint32_t at, std::size_t count) {
    std::vector<std::int32_t> values(count);
    std::memcpy(values.data(), block + at, count * sizeof(std::int32_t));
    return values;
  };
  EXPECT_EQ(selected.heads.count, 3);
  EXPECT_EQ(list(selected.heads.chosen, 3), (std::vector<std::int32_t>{2, 0, 2}));
  EXPECT_EQ(list(selected.heads.first_place, 4), (std::vector<std::int32_t>{1, -1, 0, -1}));
  EXPECT_EQ(list(selected.heads.next_place, 3), (std::vector<std::int32_t>{2, -1, -1}));
  EXPECT_EQ(list(selected.queries.first_place, 6), (std::vector<std::int32_t>{-1, 1, -1, -1, -1, 0}));
  expect_same_tensor(selected.tensor, dweights);
}

TEST(CudaArguments, WhatDoesNotFitIn32BitsIsRefusedInWords) {
  const Tensor row({1, 1, 1, 8});
  const auto refusal = [&](std::int64_t queries, std::int64_t keys, std::int64_t offset, DType dtype = DType::f32) {
    AttentionProblem problem;
    const Tensor typed({1, 1, 1, 8}, dtype);
    problem.query = typed.view().expand({1, 1, queries, 8});
    problem.key = problem.value = row.view().expand({1, 1, keys, 8});
    problem.key_length = keys;
    problem.query_heads = problem.kv_heads = 1, problem.head_size = problem.value_size = 8;
    std::vector<SequenceSpan> sequences = {{.query_count = queries, .key_count = keys, .offset = offset}};
    problem.sequences = sequences;
    return cannot(problem);
  };
  constexpr std::int64_t kTooMany = std::int64_t{1} << 31;
  EXPECT_EQ(refusal(7, 9, 3), "");
  EXPECT_EQ(refusal(kTooMany - 1, 9, 0), "");
  EXPECT_EQ(refusal(kTooMany, 9, 0),
            "the cuda engine counts in 32 bits; the number of queries is 2147483648, beyond the limit of 2147483647");
  EXPECT_EQ(refusal(7, kTooMany, 0),
            "the cuda engine counts in 32 bits; the number of keys is 2147483648, beyond the limit of 2147483647");
  EXPECT_EQ(
      refusal(7, 9, std::int64_t{1} << 40),
      "the cuda engine counts in 32 bits; an alignment's offset is 1099511627776, beyond the limit of 1073741823");
  EXPECT_EQ(
      refusal(7, 9, -(std::int64_t{1} << 40)),
      "the cuda engine counts in 32 bits; an alignment's offset is -1099511627776, beyond the limit of 1073741823");
  EXPECT_EQ(refusal(7, 9, 0, DType::f64),
            "the cuda engine does not compute in f64; copy the tensors to the CPU, where the reference engine does");
}

}  // namespace
}  // namespace rapt::cuda
