// Compares every option alone, every pair of options, and edge cases with results computed by PyTorch
// (tests/data/make_vectors.py).

#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "support/vector_case.h"

namespace rapt::test {
namespace {

std::string name_of_case(const ::testing::TestParamInfo<VectorName>& info) { return info.param.name; }

class TorchVectors : public ::testing::TestWithParam<VectorName> {};

TEST_P(TorchVectors, DoubleMatches) {
  const VectorCase vector(GetParam());
  if (vector.only_f32()) {
    // In f64 the sum with -1e9 keeps some digits of the score, and how many depends on rounding, so there is no
    // expected result.
    EXPECT_NO_THROW(run_case(vector, {}));
    return;
  }
  expect_matches_torch(vector, {});
  expect_matches_torch(vector, {.reuse_forward = true});
}

TEST_P(TorchVectors, FloatMatches) {
  expect_matches_torch(VectorCase(GetParam()), {.query = DType::f32, .key_value = DType::f32});
}

INSTANTIATE_TEST_SUITE_P(Reference, TorchVectors, ::testing::ValuesIn(vector_names()), name_of_case);

class SixteenBitTorchVectors : public ::testing::TestWithParam<VectorName> {};

TEST_P(SixteenBitTorchVectors, Bfloat16IsOneRoundingAway) {
  expect_matches_torch(VectorCase(GetParam()), {.query = DType::bf16, .key_value = DType::bf16});
}

TEST_P(SixteenBitTorchVectors, Float16IsOneRoundingAway) {
  expect_matches_torch(VectorCase(GetParam()), {.query = DType::f16, .key_value = DType::f16});
}

TEST_P(SixteenBitTorchVectors, FloatQueriesReadBfloat16Keys) {
  expect_matches_torch(VectorCase(GetParam()), {.query = DType::f32, .key_value = DType::bf16});
}

TEST_P(SixteenBitTorchVectors, Bfloat16QueriesReadFloat16Keys) {
  expect_matches_torch(VectorCase(GetParam()), {.query = DType::bf16, .key_value = DType::f16});
}

INSTANTIATE_TEST_SUITE_P(Reference, SixteenBitTorchVectors, ::testing::ValuesIn(sixteen_bit_vector_names()),
                         name_of_case);

// What the list of cases covers, derived from the cases themselves.

const std::vector<std::string> kOptions = {"scale",
                                           "softcap",
                                           "alibi",
                                           "sinks",
                                           "keep",
                                           "drop",
                                           "add",
                                           "fill",
                                           "fill_inf",
                                           "causal_top_left",
                                           "causal_bottom_right",
                                           "causal_offset",
                                           "window_left",
                                           "window_right",
                                           "window_both",
                                           "key_lengths",
                                           "packed",
                                           "gqa",
                                           "mqa",
                                           "dv",
                                           "layout",
                                           "dropout",
                                           "mean",
                                           "selection",
                                           "dlse",
                                           "dweights"};

// Pairs that are impossible in a call, in PyTorch or in rapt.
const std::map<std::set<std::string>, std::string> kImpossible = {
    {{"causal_top_left", "causal_bottom_right"}, "a call has one alignment"},
    {{"causal_top_left", "causal_offset"}, "a call has one alignment"},
    {{"causal_bottom_right", "causal_offset"}, "a call has one alignment"},
    {{"window_left", "window_right"}, "a call has one window; one that is closed on both sides is window_both"},
    {{"window_left", "window_both"}, "a call has one window"},
    {{"window_right", "window_both"}, "a call has one window"},
    {{"gqa", "mqa"}, "a call has one number of kv heads"},
};

TEST(TorchVectorList, HasAtLeastThreeHundredCases) { EXPECT_GE(vector_names().size(), 300U); }

TEST(TorchVectorList, NamesEachCaseOnce) {
  std::set<std::string> names;
  for (const VectorName& one : vector_names()) EXPECT_TRUE(names.insert(one.name).second) << one.name;
}

TEST(TorchVectorList, HasEveryOptionAlone) {
  std::set<std::string> alone;
  for (const VectorName& one : vector_names()) {
    const std::set<std::string> features = features_of(VectorCase(one));
    if (features.size() == 1) alone.insert(*features.begin());
  }
  for (const std::string& option : kOptions) EXPECT_TRUE(alone.contains(option)) << option;
}

TEST(TorchVectorList, HasEveryPairOfOptionsThatACallCanHave) {
  std::set<std::set<std::string>> pairs;  // in cases that use only these two options
  for (const VectorName& one : vector_names()) {
    const std::set<std::string> features = features_of(VectorCase(one));
    if (features.size() == 2) pairs.insert(features);
  }
  for (const std::string& a : kOptions) {
    for (const std::string& b : kOptions) {
      if (a >= b || kImpossible.contains({a, b})) continue;
      EXPECT_TRUE(pairs.contains({a, b})) << a << " and " << b;
    }
  }
  for (const auto& [pair, reason] : kImpossible) EXPECT_FALSE(pairs.contains(pair)) << reason;
}

TEST(TorchVectorList, HasEveryBroadcastShapeOfEveryMaskKind) {
  std::map<std::string, std::set<std::string>> shapes;
  for (const VectorName& one : vector_names()) {
    if (one.group != "broadcast") continue;
    const VectorCase vector(one);
    for (const auto& mask : vector.options().at("masks")) {
      shapes[mask.at("kind")].insert(to_string(vector.input("mask0").shape()));
    }
  }
  EXPECT_EQ(shapes.size(), 4U);
  for (const auto& [kind, found] : shapes) EXPECT_EQ(found.size(), 16U) << kind;  // each of four dimensions: 1 or all
}

TEST(TorchVectorList, EveryCaseHasAnswersInBothTypes) {
  for (const VectorName& one : vector_names()) {
    const VectorCase vector(one);
    for (const char* answer : {"out", "lse", "dq", "dk", "dv"}) {
      EXPECT_TRUE(vector.has(std::string("f32/") + answer)) << one.name << ' ' << answer;
      EXPECT_NE(vector.has(std::string("f64/") + answer), vector.only_f32()) << one.name << ' ' << answer;
    }
  }
}

}  // namespace
}  // namespace rapt::test
