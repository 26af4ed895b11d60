// Tests errors of tensors and their exact messages.
#include <cstdint>
#include <limits>
#include <locale>
#include <numeric>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rapt/safetensors.h"
#include "rapt/tensor.h"
#include "support/expect_error.h"

namespace rapt::test {
namespace {

using ::testing::ElementsAre;

Tensor counting(const Dims& shape) {
  Tensor tensor(shape);
  std::iota(tensor.values<float>().begin(), tensor.values<float>().end(), 0.0F);
  return tensor;
}

TEST(TensorErrors, SayWhatWasAskedAndWhatWasFound) {
  const Tensor x = counting({2, 6});
  const ConstTensorView v = x.view();
  expect_error([&] { (void)v.transpose(0, 2); },
               "transpose: shape (2, 6) has no dimension 2; it has dimensions 0 to 1");
  expect_error([&] { (void)v.transpose(-1, 0); },
               "transpose: shape (2, 6) has no dimension -1; it has dimensions 0 to 1");
  expect_error([&] { (void)v.permute({0}); },
               "permute: 1 dimensions given for shape (2, 6); list each of its 2 dimensions exactly once");
  expect_error(
      [&] {
        (void)v.permute({0, 0});
      },
      "permute: dimension 0 is given twice; list each of the 2 dimensions exactly once");
  expect_error([&] { (void)v.permute({0, 2}); }, "permute: shape (2, 6) has no dimension 2; it has dimensions 0 to 1");
  expect_error([&] { (void)v.slice(1, 2, 7); }, "slice: range 2 to 7 is not valid for dimension 1, which has size 6");
  expect_error([&] { (void)v.slice(1, -1, 2); }, "slice: range -1 to 2 is not valid for dimension 1, which has size 6");
  expect_error([&] { (void)v.slice(1, 3, 2); }, "slice: range 3 to 2 is not valid for dimension 1, which has size 6");
  expect_error([&] { (void)v.select(0, 2); }, "select: index 2 is out of range for dimension 0, which has size 2");
  expect_error([&] { (void)v.select(0, -1); }, "select: index -1 is out of range for dimension 0, which has size 2");
  expect_error([&] { (void)v.unsqueeze(3); },
               "unsqueeze: position 3 is not valid for shape (2, 6); it must be from 0 to 2");
  expect_error([&] { (void)v.split(1, 4); }, "split: size 6 of dimension 1 cannot be divided into 4 equal parts");
  expect_error([&] { (void)v.split(1, 0); }, "split: size 6 of dimension 1 cannot be divided into 0 equal parts");
  expect_error([&] { (void)v.merge(1); }, "merge: shape (2, 6) has no dimension 2; it has dimensions 0 to 1");
  expect_error(
      [&] { (void)v.transpose(0, 1).merge(0); },
      "merge: dimensions 0 and 1 of shape (6, 2) with strides (1, 6) are not adjacent in memory; a copy is needed");
  expect_error([&] { (void)v.expand({2, 7}); }, "expand: shape (2, 6) does not broadcast to (2, 7)");
  expect_error([&] { (void)v.expand({6}); }, "expand: shape (2, 6) does not broadcast to (6,)");
  expect_error([&] { (void)v.reshape({3, 5}); }, "reshape: shape (2, 6) has 12 elements, (3, 5) has 15");
  expect_error([&] { (void)v.transpose(0, 1).reshape({12}); },
               "reshape: shape (6, 2) with strides (1, 6) is not contiguous; copy it first");
}

TEST(TensorErrors, ElementAccessIsChecked) {
  const Tensor x = counting({2, 6});
  expect_error([&] { (void)x.view().at<double>(0, 0); }, "tensor: holds f32, but was accessed as f64");
  expect_error([&] { (void)x.values<bfloat16>(); }, "tensor: holds f32, but was accessed as bf16");
  expect_error([&] { (void)x.view().at<float>(0); },
               "at: 1 indices were given for shape (2, 6); give one for each dimension");
  expect_error([&] { (void)x.view().at<float>(0, 6); },
               "at: index 6 is out of range for dimension 1, which has size 6");
  expect_error([&] { (void)x.view().at<float>(-1, 0); },
               "at: index -1 is out of range for dimension 0, which has size 2");
}

TEST(TensorErrors, ImpossibleShapesAreRefused) {
  const std::int64_t huge = std::int64_t{1} << 32;
  expect_error([] { (void)Tensor(Dims{2, -1}); }, "tensor: shape (2, -1) has a negative size");
  expect_error(
      [&] {
        (void)Tensor(Dims{huge, huge});
      },
      "tensor: shape (4294967296, 4294967296) has more elements than a 64-bit integer can count");
  expect_error([] { (void)Dims{1, 2, 3, 4, 5, 6, 7, 8, 9}; }, "tensor: rank 9 exceeds the maximum of 8");
  expect_error(
      [] {
        (void)Tensor::from<float>({2, 2}, {1, 2, 3});
      },
      "reshape: shape (3,) has 3 elements, (2, 2) has 4");
  expect_error(
      [] {
        (void)ConstTensorView(nullptr, DType::f32, Dims{2, 3}, Dims{1});
      },
      "tensor: shape (2, 3) has 2 sizes, strides (1,) have 1; give one stride for each size");
}

TEST(TensorErrors, HeadsMustDivideTheEmbedding) {
  const Tensor x = counting({2, 3, 8});
  expect_error([&] { (void)split_heads(x.view(), 3); }, "split_heads: embedding size 8 cannot be divided into 3 heads");
  expect_error([&] { (void)split_heads(x.view(), 0); }, "split_heads: embedding size 8 cannot be divided into 0 heads");
  expect_error([&] { (void)split_heads(x.view().select(0, 0), 2); }, "split_heads: shape (3, 8) must be (B, L, E)");
  expect_error([&] { (void)combine_heads(x.view()); }, "combine_heads: shape (2, 3, 8) must be (B, H, L, D)");
  expect_error([&] { (void)combine_heads_copy(x.view()); }, "combine_heads: shape (2, 3, 8) must be (B, H, L, D)");
  const Tensor heads = counting({2, 4, 3, 5});
  expect_error([&] { (void)combine_heads(heads.view()); },
               "combine_heads: shape (2, 4, 3, 5) with strides (60, 15, 5, 1) does not store the heads of a token "
               "contiguously; use combine_heads_copy");
}

TEST(TensorErrors, ExpandRefusesANegativeOrUncountableShape) {
  const Tensor row = counting({1, 3});
  const std::int64_t huge = std::int64_t{1} << 62;
  expect_error([&] { (void)row.view().expand({-1, 3}); }, "tensor: shape (-1, 3) has a negative size");
  expect_error(
      [&] {
        (void)row.view().expand({huge, 3});
      },
      "tensor: shape (4611686018427387904, 3) has more elements than a 64-bit integer can count");
}

TEST(TensorErrors, CopiesRefuseAnUndefinedView) {
  Tensor scalar{Dims{}};
  EXPECT_THROW((void)Tensor::copy_of(ConstTensorView()), Error);
  EXPECT_THROW(copy(ConstTensorView(), scalar), Error);
  EXPECT_THROW(copy(scalar, TensorView()), Error);
}

TEST(TensorErrors, CopyNeedsEqualShapesAndWritesNothingOtherwise) {
  Tensor to = counting({3, 2});
  expect_error(
      [&] {
        copy(counting({2, 3}), to);
      },
      "copy: from has shape (2, 3), to has shape (3, 2); they must be equal");
  EXPECT_THAT(to.values<float>(), ElementsAre(0, 1, 2, 3, 4, 5));
}

TEST(TensorErrors, StridesThatReachBeyondAllMemoryAreRefused) {
  float value = 0.0F;
  constexpr std::int64_t kFar = std::int64_t{1} << 62;
  EXPECT_THROW(TensorView(&value, {3, 3}, {kFar, 1}), Error);
  EXPECT_THROW(TensorView(&value, {2, 2, 2}, {kFar, kFar, 1}), Error);
  EXPECT_THROW(TensorView(&value, {2}, {std::numeric_limits<std::int64_t>::min()}), Error);
  EXPECT_NO_THROW(TensorView(&value, {1}, {kFar}));
}

// A locale that programs may set, which writes 1.000.000,5.
struct Grouped : std::numpunct<char> {
  char do_thousands_sep() const override { return '.'; }
  std::string do_grouping() const override { return "\3"; }
  char do_decimal_point() const override { return ','; }
};

TEST(Texts, AreTheSameInEveryLocale) {
  const Tensor x = counting({1, 5000});
  const std::vector<std::byte> written = safetensors_bytes({{"x", x}});
  const std::locale before = std::locale::global(std::locale(std::locale::classic(), new Grouped));
  const std::string shape = to_string(Dims{1, 5000});
  const std::string words = refusal([&] { (void)x.view().slice(1, 2, 7000); });
  const bool same = safetensors_bytes({{"x", x}}) == written;
  std::locale::global(before);
  EXPECT_EQ(shape, "(1, 5000)");
  EXPECT_EQ(words, "slice: range 2 to 7000 is not valid for dimension 1, which has size 5000");
  EXPECT_TRUE(same);
}

}  // namespace
}  // namespace rapt::test
