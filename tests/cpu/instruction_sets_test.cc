// Tests every instruction set of this machine with PyTorch's results and with non-finite inputs.
#include <cmath>
#include <limits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cases/compare.h"
#include "cases/list.h"
#include "rapt/cpu.h"
#include "support/every_instruction_set.h"
#include "support/vector_case.h"

namespace rapt::test {
namespace {

using cases::Answer;
using cases::Case;
using cases::CaseSpec;

class InstructionSets : public EveryInstructionSet {};
RAPT_ON_EVERY_INSTRUCTION_SET(InstructionSets);

void expect_near_the_truth(const CaseSpec& spec) {
  const Case test(spec);
  bool untouched = false;
  const Answer got = cases::run(test, &untouched);
  EXPECT_EQ(cases::mismatch(test.spec, got, cases::truth(test)), "") << describe(spec);
  EXPECT_TRUE(untouched) << "memory around `out` was written: " << describe(spec);
  if (!cases::has_backward(spec)) return;
  const cases::Gradients gradients = cases::run_backward(test, &untouched);
  const auto compared = cases::compare(test.spec, gradients, cases::true_gradients(test));
  EXPECT_EQ(cases::mismatch(compared), "") << describe(spec);
  EXPECT_TRUE(untouched) << "memory around a gradient was written: " << describe(spec);
}

TEST_P(InstructionSets, GivePyTorchsAnswers) {
  for (const VectorName& name : vector_names()) {
    for (const bool reuse : {false, true}) {
      expect_matches_torch(
          VectorCase(name),
          {.engine = Engine::automatic, .query = DType::f32, .key_value = DType::f32, .reuse_forward = reuse});
    }
  }
}

TEST_P(InstructionSets, GivePyTorchsAnswersInSixteenBits) {
  for (const VectorName& name : sixteen_bit_vector_names()) {
    for (const DType query : {DType::bf16, DType::f16, DType::f32}) {
      for (const DType key_value : {DType::bf16, DType::f16}) {
        expect_matches_torch(VectorCase(name), {.engine = Engine::automatic, .query = query, .key_value = key_value});
      }
    }
  }
}

TEST_P(InstructionSets, CapScoresOfEverySizeAsTheReferenceDoes) {
  for (const double softcap : {0.01, 0.5, 3.0, 50.0, 1e4}) {
    for (const double spread : {1e-3, 0.3, 1.0, 4.0, 12.0}) {
      CaseSpec spec{.name = "Softcap", .queries = 40, .keys = 90, .spread = spread, .softcap = softcap};
      spec.captures = {{Stage::capped, {}}, {Stage::weights, {}}};
      expect_near_the_truth(spec);
    }
  }
}

// ---------------------------------------------------------------- not finite

constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinity = std::numeric_limits<float>::infinity();

// Two heads, 70 queries, 530 keys: several tiles of rows, three chunks of keys.
struct Inputs {
  static constexpr std::int64_t kQueries = 70, kKeys = 530, kSize = 12;
  Tensor query{{1, 2, kQueries, kSize}}, key{{1, 2, kKeys, kSize}}, value{{1, 2, kKeys, kSize}};
  AttentionOptions options;

  Inputs() {
    std::uint32_t number = 0;
    for (Tensor* tensor : {&query, &key, &value}) {
      cases::Stream stream(11, ++number);
      for (float& x : tensor->values<float>()) x = static_cast<float>(2.0 * stream.uniform() - 1.0);
    }
  }
  struct Outputs {
    Tensor out{{1, 2, kQueries, kSize}}, lse{{1, 2, kQueries}};
  };
  Outputs run(Engine engine) const {
    Outputs outputs;
    AttentionOptions with = options;
    with.engine = engine;
    attention({.out = outputs.out, .lse = outputs.lse}, query, key, value, with);
    return outputs;
  }
};

// Head h, query i is NaN in every element of out and in lse exactly where `is_nan` says so; every other row has the
// same bits as without the non-finite values.
template <class IsNan>
void expect_nan_only_where(const Inputs& good, const Inputs& bad, const IsNan& is_nan) {
  const Inputs::Outputs wanted = good.run(Engine::cpu);
  const Inputs::Outputs got = bad.run(Engine::cpu);
  for (std::int64_t h = 0; h < 2; ++h) {
    for (std::int64_t i = 0; i < Inputs::kQueries; ++i) {
      const bool nan = is_nan(h, i);
      const float lse = got.lse.view().at<float>(0, h, i);
      EXPECT_TRUE(nan ? std::isnan(lse) : lse == wanted.lse.view().at<float>(0, h, i)) << "lse " << h << ' ' << i;
      for (std::int64_t d = 0; d < Inputs::kSize; ++d) {
        const float x = got.out.view().at<float>(0, h, i, d);
        ASSERT_TRUE(nan ? std::isnan(x) : x == wanted.out.view().at<float>(0, h, i, d))
            << "out " << h << ' ' << i << ' ' << d << ": " << x;
      }
    }
  }
}

TEST_P(InstructionSets, ANanInAQueryMakesItsOwnRowNanAndNoOther) {
  for (const std::int64_t bad_row : {0, 1, 6, 33, 69}) {
    const Inputs good;
    Inputs bad;
    bad.query.view().at<float>(0, 1, bad_row, 5) = kNaN;
    expect_nan_only_where(good, bad, [&](std::int64_t h, std::int64_t i) { return h == 1 && i == bad_row; });
  }
}

TEST_P(InstructionSets, ANanInAKeyMakesOnlyTheRowsThatSeeItNan) {
  for (const std::int64_t bad_key : {0, 5, 255, 256, 300, 529}) {
    Inputs good, bad;
    good.options.causal = bad.options.causal = true;
    good.options.alignment = bad.options.alignment = Alignment::bottom_right();
    good.options.window.left = bad.options.window.left = 300;
    bad.key.view().at<float>(0, 0, bad_key, 0) = kNaN;
    expect_nan_only_where(good, bad, [&](std::int64_t h, std::int64_t i) {
      const std::int64_t position = i + Inputs::kKeys - Inputs::kQueries;
      return h == 0 && bad_key <= position && bad_key >= position - 300;
    });
  }
}

TEST_P(InstructionSets, AKeyThatAMaskHidesMayHoldAnything) {
  Tensor hidden({Inputs::kQueries, Inputs::kKeys}, DType::boolean);
  for (const std::int64_t key : {3, 256, 511}) {
    for (std::int64_t i = 0; i < Inputs::kQueries; ++i) hidden.view().at<bool>(i, key) = i != 17;
  }
  for (const float anything : {kNaN, kInfinity, -kInfinity}) {
    Inputs good, bad;
    for (Inputs* inputs : {&good, &bad}) inputs->options.masks = {Mask::drop(hidden)};
    for (const std::int64_t key : {3, 256, 511}) {
      for (std::int64_t d = 0; d < Inputs::kSize; ++d) bad.key.view().at<float>(0, 1, key, d) = anything;
    }
    // Query 17 sees them. With both signs in a query, the score of a key of infinities is ∞ − ∞.
    expect_nan_only_where(good, bad, [](std::int64_t h, std::int64_t i) { return h == 1 && i == 17; });
  }
}

TEST_P(InstructionSets, AFilledScoreIsItsValueWhateverTheKeyHolds) {
  Tensor filled({1, Inputs::kKeys}, DType::boolean);
  filled.view().at<bool>(0, 40) = true;
  Inputs good, bad;
  for (Inputs* inputs : {&good, &bad}) inputs->options.masks = {Mask::fill(filled, -3.0)};
  bad.key.view().at<float>(0, 0, 40, 2) = kNaN;
  expect_nan_only_where(good, bad, [](std::int64_t, std::int64_t) { return false; });
}

TEST_P(InstructionSets, WhatLiesPastAKeyLengthIsNeverRead) {
  for (const std::int64_t length : {1, 100, 256, 257, 529}) {
    Inputs good, bad;
    good.options.key_lengths = bad.options.key_lengths = {length};
    for (Tensor* tensor : {&bad.key, &bad.value}) {
      for (std::int64_t j = length; j < Inputs::kKeys; ++j) {
        for (std::int64_t d = 0; d < Inputs::kSize; ++d) {
          tensor->view().at<float>(0, 0, j, d) = kNaN;
          tensor->view().at<float>(0, 1, j, d) = -kInfinity;
        }
      }
    }
    expect_nan_only_where(good, bad, [](std::int64_t, std::int64_t) { return false; });
  }
}

TEST_P(InstructionSets, AScoreOfPlusInfinityMakesItsRowNan) {
  Tensor bias({Inputs::kQueries, Inputs::kKeys});
  Tensor infinite({Inputs::kQueries, Inputs::kKeys});
  infinite.view().at<float>(9, 300) = kInfinity;
  infinite.view().at<float>(64, 529) = kNaN;
  Inputs good, bad;
  good.options.masks = {Mask::add(bias)};
  bad.options.masks = {Mask::add(infinite)};
  expect_nan_only_where(good, bad, [](std::int64_t, std::int64_t i) { return i == 9 || i == 64; });
}

// An infinite q or k gives scores of +∞, −∞ or NaN, depending on signs; the reference determines which rows become NaN.
TEST_P(InstructionSets, InfinitiesInTheInputsDoWhatTheReferenceSays) {
  for (const float value : {kInfinity, -kInfinity, kNaN}) {
    for (const bool in_query : {true, false}) {
      for (const double softcap : {0.0, 5.0}) {
        Inputs inputs;
        inputs.options.softcap = softcap;
        Tensor& tensor = in_query ? inputs.query : inputs.key;
        tensor.view().at<float>(0, 0, 7, 3) = value;
        tensor.view().at<float>(0, 1, 60, 0) = value;
        const Inputs::Outputs got = inputs.run(Engine::cpu);
        const Inputs::Outputs wanted = inputs.run(Engine::reference);
        EXPECT_LE(cases::relative_error(got.out, wanted.out), 2e-6) << value << ' ' << in_query << ' ' << softcap;
        EXPECT_LE(cases::relative_error(got.lse, wanted.lse), 2e-6) << value << ' ' << in_query << ' ' << softcap;
      }
    }
  }
}

// Keys that are hidden from all rows may hold non-finite numbers: all gradients are as with finite ones, and those of
// the hidden keys are 0. The upstream gradient of the weights is NaN at one of these keys.
TEST_P(InstructionSets, AHiddenKeyMayHoldAnythingInBackwardToo) {
  Tensor hidden({Inputs::kQueries, Inputs::kKeys}, DType::boolean);
  for (const std::int64_t key : {3, 256, 511}) {
    for (std::int64_t i = 0; i < Inputs::kQueries; ++i) hidden.view().at<bool>(i, key) = true;
  }
  struct Three {
    Tensor dquery{{1, 2, Inputs::kQueries, Inputs::kSize}}, dkey{{1, 2, Inputs::kKeys, Inputs::kSize}},
        dvalue{{1, 2, Inputs::kKeys, Inputs::kSize}};
  };
  const auto differentiate = [](const Inputs& inputs) {
    Three three;
    Tensor dout({1, 2, Inputs::kQueries, Inputs::kSize}), dweights({1, 2, Inputs::kQueries, Inputs::kKeys});
    cases::Stream stream(12, 1);
    for (float& x : dout.values<float>()) x = static_cast<float>(2.0 * stream.uniform() - 1.0);
    for (std::int64_t i = 0; i < Inputs::kQueries; ++i) dweights.view().at<float>(0, 0, i, 256) = kNaN;
    attention_backward({.dquery = three.dquery, .dkey = three.dkey, .dvalue = three.dvalue},
                       {.dout = dout, .dweights = {{.from = dweights}}}, inputs.query, inputs.key, inputs.value,
                       inputs.options);
    return three;
  };
  for (const float anything : {kNaN, kInfinity, -kInfinity}) {
    for (const double softcap : {0.0, 3.0}) {
      Inputs good, bad;
      for (Inputs* inputs : {&good, &bad}) {
        inputs->options.masks = {Mask::drop(hidden)}, inputs->options.softcap = softcap;
      }
      for (const std::int64_t key : {3, 256, 511}) {
        for (std::int64_t d = 0; d < Inputs::kSize; ++d) bad.key.view().at<float>(0, 1, key, d) = anything;
      }
      const Three wanted = differentiate(good), got = differentiate(bad);
      EXPECT_EQ(cases::relative_error(got.dquery, wanted.dquery), 0.0) << anything << ' ' << softcap;
      EXPECT_EQ(cases::relative_error(got.dkey, wanted.dkey), 0.0) << anything << ' ' << softcap;
      EXPECT_EQ(cases::relative_error(got.dvalue, wanted.dvalue), 0.0) << anything << ' ' << softcap;
      for (const float x : got.dkey.values<float>()) ASSERT_TRUE(std::isfinite(x));
      for (std::int64_t d = 0; d < Inputs::kSize; ++d) EXPECT_EQ(got.dkey.view().at<float>(0, 1, 256, d), 0.0F);
    }
  }
}

// Keys past a key length are never read, and have gradients of 0.
TEST_P(InstructionSets, WhatLiesPastAKeyLengthHasNoGradient) {
  for (const std::int64_t length : {0, 1, 256, 300}) {
    Inputs inputs;
    inputs.options.key_lengths = {length};
    for (Tensor* tensor : {&inputs.key, &inputs.value}) {
      for (std::int64_t j = length; j < Inputs::kKeys; ++j) tensor->view().at<float>(0, 1, j, 3) = kNaN;
    }
    Tensor dout({1, 2, Inputs::kQueries, Inputs::kSize}), dquery({1, 2, Inputs::kQueries, Inputs::kSize});
    Tensor dkey({1, 2, Inputs::kKeys, Inputs::kSize}), dvalue({1, 2, Inputs::kKeys, Inputs::kSize});
    for (Tensor* tensor : {&dout, &dquery, &dkey, &dvalue}) {
      for (float& x : tensor->values<float>()) x = 0.5F;
    }
    attention_backward({.dquery = dquery, .dkey = dkey, .dvalue = dvalue}, {.dout = dout}, inputs.query, inputs.key,
                       inputs.value, inputs.options);
    for (const float x : dquery.values<float>()) ASSERT_TRUE(length > 0 ? std::isfinite(x) : x == 0.0F);
    for (const Tensor* tensor : {&dkey, &dvalue}) {
      for (std::int64_t j = 0; j < Inputs::kKeys; ++j) {
        const float x = tensor->view().at<float>(0, 1, j, 3);
        ASSERT_TRUE(j < length ? std::isfinite(x) : x == 0.0F) << j << ": " << x;
      }
    }
  }
}

TEST(InstructionSetList, HasExactlyOneInUseThatRunsHere) {
  int in_use = 0;
  for (const InstructionSetInfo& set : instruction_sets()) {
    if (set.in_use) ++in_use;
    EXPECT_TRUE(set.runs_here || !set.in_use) << set.name;
  }
  EXPECT_EQ(in_use, 1);
  EXPECT_TRUE(instruction_sets().back().runs_here) << "the last one runs anywhere";
}

TEST(InstructionSetList, RefusesANameThatDoesNotExist) {
  const std::string before = instruction_set_in_use();
  try {
    use_instruction_set("mmx");
    FAIL() << "nothing was thrown";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), testing::StartsWith("instruction set: unknown name mmx; this build has "));
    EXPECT_THAT(error.what(), testing::HasSubstr(before));
  }
  EXPECT_EQ(instruction_set_in_use(), before);
}

}  // namespace
}  // namespace rapt::test
