// Tests errors of the rotary embedding and their exact messages; a failing call must write nothing.
#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "rapt/rotary.h"
#include "support/cuda/has_cuda.h"

namespace rapt {
namespace {

struct BadRotary {
  const char* name;
  std::int64_t head_size;
  RotaryOptions options;
  const char* message;
};

void PrintTo(const BadRotary& bad, std::ostream* stream) { *stream << bad.name; }

RotaryScaling::Yarn ramp(double fast, double slow, double attention_factor = 1.0) {
  return {.beta_fast = fast, .beta_slow = slow, .attention_factor = attention_factor};
}

// clang-format off
const std::vector<BadRotary> kBadRotary = {
    {"HeadSizeZero", 0, {}, "rotary: head size is 0; it must be positive"},
    {"HeadSizeOdd", 65, {}, "rotary: head size is 65, and rotary embedding rotates pairs; give an even head size, or an even options.size below it"},
    {"SizeOdd", 64, {.size = 33}, "rotary: size is 33; it must be even, from 2 to the head size 64, or 0 for all of it"},
    {"SizeTooLarge", 64, {.size = 66}, "rotary: size is 66; it must be even, from 2 to the head size 64, or 0 for all of it"},
    {"SizeNegative", 64, {.size = -2}, "rotary: size is -2; it must be even, from 2 to the head size 64, or 0 for all of it"},
    {"BaseZero", 64, {.base = 0.0}, "rotary: base is 0; it must be finite and above 0"},
    {"BaseNan", 64, {.base = std::nan("")}, "rotary: base is nan; it must be finite and above 0"},
    {"FactorZero", 64, {.scaling = RotaryScaling::linear(0.0)}, "rotary: scaling.factor is 0; it must be finite and above 0"},
    {"FactorInfinite", 64, {.scaling = RotaryScaling::ntk(INFINITY)}, "rotary: scaling.factor is inf; it must be finite and above 0"},
    {"NtkOfOnePair", 2, {.scaling = RotaryScaling::ntk(2.0)}, "rotary: ntk scaling is requested with size 2; its exponent is size / (size - 2), so size must be above 2"},
    {"DynamicWithoutOriginalLength", 64, {.scaling = RotaryScaling::dynamic(2.0, 0, 100)}, "rotary: scaling.original_length is 0; dynamic scaling needs the number of positions that the model was trained on"},
    {"DynamicNegativeLength", 64, {.scaling = RotaryScaling::dynamic(2.0, 100, -1)}, "rotary: scaling.length is -1; it must not be negative"},
    {"DynamicShrinks", 64, {.scaling = {.kind = RotaryScaling::Kind::dynamic, .factor = -1.0, .original_length = 10}}, "rotary: scaling.factor is -1; it must be finite and above 0"},
    {"YarnWithoutOriginalLength", 64, {.scaling = RotaryScaling::yarn(2.0, -5)}, "rotary: scaling.original_length is -5; yarn scaling needs the number of positions that the model was trained on"},
    {"YarnBaseOne", 64, {.base = 1.0, .scaling = RotaryScaling::yarn(2.0, 64)}, "rotary: base is 1; yarn scaling takes its logarithm, so it must be above 1"},
    {"YarnBetas", 64, {.scaling = RotaryScaling::yarn(2.0, 64, ramp(1.0, 32.0))}, "rotary: scaling.ramp has beta_fast 1 and beta_slow 32; the first must be larger, and both above 0"},
    {"YarnAttentionFactor", 64, {.scaling = RotaryScaling::yarn(2.0, 64, ramp(32.0, 1.0, -1.0))}, "rotary: scaling.ramp.attention_factor is -1; it must be finite and above 0"},
    {"Llama3Factors", 64, {.scaling = RotaryScaling::llama3(8.0, 8192, 4.0, 4.0)}, "rotary: scaling has low_freq_factor 4 and high_freq_factor 4; the second must be larger, and both above 0"},
    {"MaxPositionsNegative", 64, {.max_positions = -1}, "rotary: max_positions is -1; it must be from 0 to 2147483648"},
    {"MaxPositionsTooMany", 64, {.max_positions = std::int64_t{1} << 40}, "rotary: max_positions is 1099511627776; it must be from 0 to 2147483648"},
    {"ThreadsNegative", 64, {.threads = -3}, "rotary: threads is -3; it must be positive, or 0 for all"},
};
// clang-format on

class BadRotaryOptions : public testing::TestWithParam<BadRotary> {};
INSTANTIATE_TEST_SUITE_P(Calls, BadRotaryOptions, testing::ValuesIn(kBadRotary),
                         [](const auto& instance) { return std::string(instance.param.name); });

TEST_P(BadRotaryOptions, AreRefusedWithTheirOwnMessage) {
  try {
    const Rotary rotary(GetParam().head_size, GetParam().options);
    FAIL() << "was not refused";
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), GetParam().message);
  }
}

// A valid call; each invalid one differs from it in one argument.
struct Call {
  Tensor x{{2, 3, 4, 8}}, y{{2, 3, 4, 8}}, spare{{64, 64}};
  ConstTensorView from = x;
  TensorView to = y;
  std::vector<std::int64_t> numbers;
  RotaryPositions positions{};
  RotaryCall call{};

  TensorView shaped(const Dims& shape, DType dtype = DType::f32) { return {spare.view().data(), dtype, shape}; }
  void rows(std::vector<std::int64_t> given) {
    numbers = std::move(given);
    positions = RotaryPositions::rows(numbers);
  }
  void tokens(std::vector<std::int64_t> given) {
    numbers = std::move(given);
    positions = RotaryPositions::tokens(numbers);
  }
};

struct BadApply {
  const char* name;
  std::function<void(Call&)> spoil;
  const char* message;
};

void PrintTo(const BadApply& bad, std::ostream* stream) { *stream << bad.name; }

// clang-format off
const std::vector<BadApply> kBadApply = {
    {"FromMissing", [](Call& c) { c.from = {}; }, "rotary: from is missing; give a tensor"},
    {"FromRank3", [](Call& c) { c.from = c.shaped({2, 4, 24}); }, "rotary: from has shape (2, 4, 24); it must be (B, H, L, D); split_heads(x, heads) converts a (B, L, E) tensor"},
    {"FromHeadSize", [](Call& c) { c.from = c.shaped({2, 3, 4, 16}); }, "rotary: from has head size 16, this Rotary was made for 8; they must be equal"},
    {"FromBool", [](Call& c) { c.from = c.shaped({2, 3, 4, 8}, DType::boolean); }, "rotary: from is bool; it must be f32, f64, bf16 or f16"},
    {"FromOnGpu", [](Call& c) { c.from = ConstTensorView(c.spare.view().data(), DType::f32, {2, 3, 4, 8}, Device{Device::Kind::cuda, 0}); }, test::with_cuda("rotary: from is on cuda:0, this call works on cpu; all its tensors must be on one device", "rotary: from is on cuda:0; the engines of this build read cpu memory")},
    {"ToMissing", [](Call& c) { c.to = {}; }, "rotary: to is missing; give a tensor"},
    {"ToShape", [](Call& c) { c.to = c.shaped({2, 3, 5, 8}); }, "rotary: to has shape (2, 3, 5, 8); it must be (B, H, L, D) = (2, 3, 4, 8)"},
    {"ToF64", [](Call& c) { c.to = c.shaped({2, 3, 4, 8}, DType::f64); }, "rotary: to is f64, from is f32; f64 does not mix with other types"},
    {"ToOverlapsItself", [](Call& c) { c.to = c.shaped({2, 1, 4, 8}).expand({2, 3, 4, 8}); }, "rotary: to has strides (32, 0, 8, 1) for shape (2, 3, 4, 8), so that several elements share an address; an output must not overlap itself"},
    {"ToOverlapsFrom", [](Call& c) { c.from = c.shaped({2, 3, 4, 8}), c.to = TensorView(c.spare.view().data_as<float>() + 8, {2, 3, 4, 8}); }, "rotary: to overlaps from partially; it must be the same tensor, or have separate memory"},
    {"ToIsFromOtherwise", [](Call& c) { c.to = TensorView(c.x.view().data(), DType::f32, {2, 4, 3, 8}).transpose(1, 2); }, "rotary: to overlaps from partially; it must be the same tensor, or have separate memory"},
    {"OffsetNegative", [](Call& c) { c.positions = -1; }, "rotary: offset is -1; positions go from 0 to 2^53"},
    {"OffsetTooLarge", [](Call& c) { c.positions = (std::int64_t{1} << 53) - 3; }, "rotary: offset is 9007199254740989; positions go from 0 to 2^53"},
    {"OffsetsCount", [](Call& c) { c.rows({1, 2, 3}); }, "rotary: offsets has 3 entries; it must have one for each batch row, 2"},
    {"OffsetsNegative", [](Call& c) { c.rows({1, -2}); }, "rotary: offsets[1] is -2; positions go from 0 to 2^53"},
    {"PositionsCount", [](Call& c) { c.tokens({1, 2, 3, 4}); }, "rotary: positions has 4 entries; it must have one for each token: (B, L) = (2, 4), 8 in all"},
    {"PositionsNegative", [](Call& c) { c.tokens({0, 1, 2, 3, 4, 5, -6, 7}); }, "rotary: positions[6] is -6; positions go from 0 to 2^53"},
    {"ThreadsNegative", [](Call& c) { c.call.threads = -1; }, "rotary: threads is -1; it must be positive, or 0 for all"},
};
// clang-format on

class BadRotaryCall : public testing::TestWithParam<BadApply> {};
INSTANTIATE_TEST_SUITE_P(Calls, BadRotaryCall, testing::ValuesIn(kBadApply),
                         [](const auto& instance) { return std::string(instance.param.name); });

TEST_P(BadRotaryCall, IsRefusedWithItsOwnMessageAndNothingIsWritten) {
  Call call;
  for (Tensor* tensor : {&call.x, &call.y, &call.spare}) {
    for (float& value : tensor->values<float>()) value = 7.0F;
  }
  GetParam().spoil(call);
  try {
    Rotary(8).apply(call.from, call.to, call.positions, call.call);
    FAIL() << "was not refused";
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), GetParam().message);
  }
  for (Tensor* tensor : {&call.x, &call.y, &call.spare}) {
    for (const float value : tensor->values<float>()) ASSERT_EQ(value, 7.0F) << "something was written";
  }
}

TEST(BadRotaryCalls, InPlaceNameTheirTensorX) {
  Tensor x({2, 3, 4, 8});
  Rotary(8).apply(x);
  try {
    Rotary(16).apply(x);
    FAIL() << "was not refused";
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "rotary: x has head size 8, this Rotary was made for 16; they must be equal");
  }
}

}  // namespace
}  // namespace rapt
