#include "rapt/tensor.h"

#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numeric>
#include <type_traits>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace rapt {
namespace {

using ::testing::ElementsAre;
using ::testing::ElementsAreArray;

// 0, 1, 2, … in row-major order: each value is its original position.
Tensor counting(const Dims& shape) {
  Tensor tensor(shape);
  std::iota(tensor.values<float>().begin(), tensor.values<float>().end(), 0.0F);
  return tensor;
}

// A view's elements in its own row-major order.
std::vector<float> read(const ConstTensorView& view) {
  const Tensor copy = Tensor::copy_of(view, DType::f32);
  return {copy.values<float>().begin(), copy.values<float>().end()};
}

// ---------------------------------------------------------------- owning

TEST(Tensors, AreZeroedContiguousAndAlignedTo64Bytes) {
  for (const DType dtype : {DType::f32, DType::f64, DType::bf16, DType::f16, DType::boolean}) {
    for (const std::int64_t size : {1, 2, 3, 17, 1000}) {
      const Tensor tensor(Dims{size, 3}, dtype);
      EXPECT_EQ(reinterpret_cast<std::uintptr_t>(tensor.view().data()) % 64, 0U);
      EXPECT_TRUE(tensor.view().is_contiguous());
      EXPECT_EQ(tensor.dtype(), dtype);
      EXPECT_EQ(tensor.count(), size * 3);
      EXPECT_THAT(read(tensor), ::testing::Each(0.0F));
    }
  }
}

TEST(Tensors, TakeTheirValuesInRowMajorOrder) {
  const Tensor tensor = Tensor::from<float>({2, 3}, {1, 2, 3, 4, 5, 6});
  EXPECT_EQ(tensor.view().at<float>(0, 2), 3.0F);
  EXPECT_EQ(tensor.view().at<float>(1, 0), 4.0F);
  EXPECT_EQ(tensor.view().strides(), (Dims{3, 1}));
  EXPECT_EQ(tensor.size(1), 3);
  const std::vector<double> values{0.5, 1.5};
  EXPECT_EQ(Tensor::from<double>({2}, values).dtype(), DType::f64);
}

TEST(Tensors, MoveAndCopyOnlyByClone) {
  static_assert(!std::is_copy_constructible_v<Tensor> && !std::is_copy_assignable_v<Tensor>);
  static_assert(std::is_nothrow_move_constructible_v<Tensor>);
  Tensor first = counting({2, 2});
  Tensor second = first.clone();
  second.view().at<float>(0, 0) = 9.0F;
  EXPECT_EQ(first.view().at<float>(0, 0), 0.0F);
  const void* memory = second.view().data();
  const Tensor third = std::move(second);
  EXPECT_EQ(third.view().data(), memory);
  EXPECT_EQ(third.view().at<float>(0, 0), 9.0F);
}

TEST(Tensors, AScalarHasOneElementAndNoDimensions) {
  Tensor scalar{Dims{}};
  scalar.view().at<float>() = 2.5F;
  EXPECT_EQ(scalar.count(), 1);
  EXPECT_EQ(scalar.view().rank(), 0);
  EXPECT_THAT(read(scalar), ElementsAre(2.5F));
}

TEST(Tensors, EmptyOnesGoThroughEveryStep) {
  const Tensor empty(Dims{2, 0, 6});
  EXPECT_EQ(empty.count(), 0);
  EXPECT_TRUE(empty.view().defined());
  EXPECT_TRUE(empty.view().is_contiguous());
  EXPECT_EQ(empty.view().transpose(0, 1).shape(), (Dims{0, 2, 6}));
  EXPECT_EQ(empty.view().slice(1, 0, 0).count(), 0);
  EXPECT_EQ(empty.view().select(0, 1).shape(), (Dims{0, 6}));
  EXPECT_EQ(empty.view().reshape({0, 5}).shape(), (Dims{0, 5}));
  EXPECT_EQ(split_heads(empty.view(), 3).shape(), (Dims{2, 3, 0, 2}));
  EXPECT_EQ(combine_heads(split_heads(empty.view(), 3)).shape(), (Dims{2, 0, 6}));
  EXPECT_EQ(combine_heads_copy(split_heads(empty.view(), 3)).shape(), (Dims{2, 0, 6}));
  EXPECT_EQ(empty.to(DType::bf16).shape(), (Dims{2, 0, 6}));
  EXPECT_EQ(Tensor().count(), 0);
}

// ---------------------------------------------------------------- views

TEST(TensorViews, ADefaultOneIsUndefined) {
  EXPECT_FALSE(TensorView().defined());
  EXPECT_FALSE(ConstTensorView().defined());
  EXPECT_FALSE(ConstTensorView(TensorView()).defined());
}

TEST(TensorViews, WritableOnesConvertToReadOnlyOnesAndNotBack) {
  static_assert(std::is_convertible_v<TensorView, ConstTensorView>);
  static_assert(!std::is_convertible_v<ConstTensorView, TensorView>);
  static_assert(!std::is_constructible_v<TensorView, const float*, Dims>);
  static_assert(std::is_same_v<decltype(ConstTensorView().at<float>(0)), const float&>);
  Tensor tensor = counting({2, 3});
  const ConstTensorView view = tensor.view().transpose(0, 1);
  EXPECT_EQ(view.data(), tensor.view().data());
  EXPECT_EQ(view.shape(), (Dims{3, 2}));
  EXPECT_EQ(view.strides(), (Dims{1, 3}));
  EXPECT_TRUE(view.defined());
}

TEST(TensorViews, TakeTheirTypeFromThePointer) {
  std::array<double, 4> memory{1, 2, 3, 4};
  const TensorView view(memory.data(), Dims{2, 2});
  EXPECT_EQ(view.dtype(), DType::f64);
  EXPECT_EQ(view.device(), Device{});
  view.at<double>(1, 1) = 7;
  EXPECT_EQ(memory[3], 7);
}

TEST(TensorViews, StridesMayBeZeroOrNegative) {
  const std::array<float, 4> memory{0, 1, 2, 3};
  EXPECT_THAT(read(ConstTensorView(&memory[3], Dims{4}, Dims{-1})), ElementsAre(3, 2, 1, 0));
  EXPECT_THAT(read(ConstTensorView(&memory[1], Dims{2, 2}, Dims{0, 1})), ElementsAre(1, 2, 1, 2));
  EXPECT_THAT(read(ConstTensorView(memory.data(), Dims{2, 2}, Dims{1, 2})), ElementsAre(0, 2, 1, 3));
}

TEST(TensorViews, TransposeSwapsTwoDimensions) {
  const Tensor tensor = counting({2, 3});
  EXPECT_THAT(read(tensor.view().transpose(0, 1)), ElementsAre(0, 3, 1, 4, 2, 5));
  EXPECT_THAT(read(tensor.view().transpose(0, 1).transpose(0, 1)), ElementsAreArray(tensor.values<float>()));
  EXPECT_THAT(read(tensor.view().transpose(1, 1)), ElementsAreArray(tensor.values<float>()));
}

TEST(TensorViews, PermuteTakesTheOrderOfTheOldDimensions) {
  const Tensor tensor = counting({2, 3, 4});
  const ConstTensorView view = tensor.view().permute({2, 0, 1});
  EXPECT_EQ(view.shape(), (Dims{4, 2, 3}));
  EXPECT_EQ(view.strides(), (Dims{1, 12, 4}));
  EXPECT_EQ(view.at<float>(3, 1, 2), 1 * 12 + 2 * 4 + 3);
}

TEST(TensorViews, SliceKeepsARangeAndSelectRemovesTheDimension) {
  const Tensor tensor = counting({3, 4});
  EXPECT_THAT(read(tensor.view().slice(1, 1, 3)), ElementsAre(1, 2, 5, 6, 9, 10));
  EXPECT_THAT(read(tensor.view().slice(0, 2, 3)), ElementsAre(8, 9, 10, 11));
  EXPECT_EQ(tensor.view().slice(0, 3, 3).shape(), (Dims{0, 4}));
  EXPECT_THAT(read(tensor.view().select(0, 1)), ElementsAre(4, 5, 6, 7));
  EXPECT_THAT(read(tensor.view().select(1, 3)), ElementsAre(3, 7, 11));
  EXPECT_THAT(read(tensor.view().slice(0, 1, 3).slice(1, 2, 4).select(0, 1)), ElementsAre(10, 11));
}

TEST(TensorViews, UnsqueezeAddsADimensionOfSizeOneAnywhere) {
  const Tensor tensor = counting({2, 3});
  EXPECT_EQ(tensor.view().unsqueeze(0).shape(), (Dims{1, 2, 3}));
  EXPECT_EQ(tensor.view().unsqueeze(1).shape(), (Dims{2, 1, 3}));
  EXPECT_EQ(tensor.view().unsqueeze(2).shape(), (Dims{2, 3, 1}));
  EXPECT_TRUE(tensor.view().unsqueeze(1).is_contiguous());
}

TEST(TensorViews, SplitAndMergeUndoEachOther) {
  const Tensor tensor = counting({2, 6});
  const ConstTensorView split = tensor.view().split(1, 3);
  EXPECT_EQ(split.shape(), (Dims{2, 3, 2}));
  EXPECT_EQ(split.at<float>(1, 2, 1), 11.0F);
  EXPECT_EQ(split.merge(1).shape(), (Dims{2, 6}));
  EXPECT_EQ(split.merge(1).strides(), (Dims{6, 1}));
  EXPECT_EQ(tensor.view().transpose(0, 1).split(0, 2).shape(), (Dims{2, 3, 2}));  // works on any strides
  EXPECT_THAT(read(tensor.view().transpose(0, 1).split(0, 2).merge(0)),
              ElementsAreArray(read(tensor.view().transpose(0, 1))));
}

TEST(TensorViews, MergeIgnoresTheStrideOfASizeOfOne) {
  const std::array<float, 8> memory{0, 1, 2, 3, 4, 5, 6, 7};
  EXPECT_THAT(read(ConstTensorView(memory.data(), Dims{1, 4}, Dims{99, 2}).merge(0)), ElementsAre(0, 2, 4, 6));
  EXPECT_THAT(read(ConstTensorView(memory.data(), Dims{4, 1}, Dims{2, 99}).merge(0)), ElementsAre(0, 2, 4, 6));
}

TEST(TensorViews, ExpandRepeatsWithoutCopying) {
  const Tensor row = counting({1, 3});
  const ConstTensorView view = row.view().expand({2, 2, 3});
  EXPECT_EQ(view.strides(), (Dims{0, 0, 1}));
  EXPECT_EQ(view.data(), row.view().data());
  EXPECT_THAT(read(view), ElementsAre(0, 1, 2, 0, 1, 2, 0, 1, 2, 0, 1, 2));
  EXPECT_FALSE(view.is_contiguous());
  EXPECT_EQ(row.view().expand({0, 3}).count(), 0);
}

TEST(TensorViews, ReshapeGivesTheSameMemoryAnotherShape) {
  const Tensor tensor = counting({2, 6});
  const ConstTensorView view = tensor.view().reshape({3, 2, 2});
  EXPECT_EQ(view.data(), tensor.view().data());
  EXPECT_EQ(view.at<float>(2, 1, 0), 10.0F);
}

TEST(TensorViews, ContiguityIgnoresWhatHasOnlyOneElement) {
  const std::array<float, 8> memory{};
  EXPECT_TRUE(ConstTensorView(memory.data(), Dims{1, 4}, Dims{77, 1}).is_contiguous());
  EXPECT_FALSE(ConstTensorView(memory.data(), Dims{2, 2}, Dims{4, 1}).is_contiguous());
  EXPECT_FALSE(ConstTensorView(memory.data(), Dims{4}, Dims{2}).is_contiguous());
}

TEST(TensorViews, EmptyOnesAreContiguousWhateverTheirStrides) {
  const Tensor empty(Dims{2, 0, 6});
  EXPECT_TRUE(empty.view().transpose(0, 2).is_contiguous());
  EXPECT_EQ(empty.view().transpose(0, 2).reshape({0}).shape(), (Dims{0}));
}

// ---------------------------------------------------------------- heads and layouts

TEST(Heads, SplitHeadsIsTheNotesViewAndTranspose) {
  const std::int64_t batch = 2, length = 3, heads = 4, size = 5;
  const Tensor x = counting({batch, length, heads * size});
  const ConstTensorView split = split_heads(x.view(), heads);
  const ConstTensorView notes = x.view().reshape({batch, length, heads, size}).transpose(1, 2);
  EXPECT_EQ(split.shape(), (Dims{batch, heads, length, size}));
  EXPECT_EQ(split.strides(), notes.strides());
  EXPECT_EQ(split.data(), x.view().data());
  EXPECT_EQ(read(split), read(notes));
  EXPECT_EQ(split.at<float>(1, 2, 1, 3), static_cast<float>((1 * length + 1) * heads * size + 2 * size + 3));
}

TEST(Heads, CombineHeadsUndoesSplitHeadsWithoutACopy) {
  Tensor x = counting({2, 3, 8});
  const TensorView combined = combine_heads(split_heads(x.view(), 4));
  EXPECT_EQ(combined.data(), x.view().data());
  EXPECT_EQ(combined.shape(), (Dims{2, 3, 8}));
  EXPECT_EQ(combined.strides(), x.view().strides());
}

TEST(Heads, CombineHeadsCopyIsTheNotesTransposeContiguousView) {
  const Tensor x = counting({2, 4, 3, 5});  // (B, H, L, D), each head's rows together
  const Tensor combined = combine_heads_copy(x.view());
  EXPECT_EQ(combined.shape(), (Dims{2, 3, 20}));
  EXPECT_THAT(combined.values<float>(), ElementsAreArray(read(x.view().transpose(1, 2))));
}

TEST(Heads, EveryLayoutBecomesTheCanonicalOrderWithoutACopy) {
  const std::int64_t B = 2, H = 3, L = 4, D = 5;
  const auto expect_same = [&](const ConstTensorView& view, const auto& place) {
    ASSERT_EQ(view.shape(), (Dims{B, H, L, D}));
    for (std::int64_t b = 0; b < B; ++b) {
      for (std::int64_t h = 0; h < H; ++h) {
        for (std::int64_t i = 0; i < L; ++i) {
          for (std::int64_t d = 0; d < D; ++d)
            ASSERT_EQ(view.at<float>(b, h, i, d), static_cast<float>(place(b, h, i, d)));
        }
      }
    }
  };
  const Tensor blhd = counting({B, L, H, D});
  expect_same(blhd.view().transpose(1, 2),
              [&](auto b, auto h, auto i, auto d) { return ((b * L + i) * H + h) * D + d; });
  const Tensor lbe = counting({L, B, H * D});
  expect_same(split_heads(lbe.view().transpose(0, 1), H),
              [&](auto b, auto h, auto i, auto d) { return ((i * B + b) * H + h) * D + d; });
  const Tensor packed = counting({B, L, 3, H, D});
  for (std::int64_t which = 0; which < 3; ++which) {
    expect_same(packed.view().permute({2, 0, 3, 1, 4}).select(0, which),
                [&](auto b, auto h, auto i, auto d) { return (((b * L + i) * 3 + which) * H + h) * D + d; });
  }
}

// ---------------------------------------------------------------- copying and converting

TEST(Copies, ConvertBetweenAllTypes) {
  const Tensor source = Tensor::from<float>({5}, {0.0F, 1.0F, -2.5F, 0.15625F, 96.0F});  // exact in every float type
  for (const DType from : {DType::f32, DType::f64, DType::bf16, DType::f16}) {
    for (const DType to : {DType::f32, DType::f64, DType::bf16, DType::f16}) {
      EXPECT_THAT(read(source.to(from).to(to)), ElementsAreArray(source.values<float>()));
    }
    EXPECT_THAT(source.to(from).to(DType::boolean).values<bool>(), ElementsAre(false, true, true, true, true));
  }
}

TEST(Copies, BetweenBoolAndFloatTrueIsOneAndAnythingButZeroIsTrue) {
  const double tiny = std::numeric_limits<double>::denorm_min();
  const Tensor numbers = Tensor::from<double>({5}, {0.0, -0.0, tiny, std::nan(""), -INFINITY});
  const Tensor truths = numbers.to(DType::boolean);
  EXPECT_THAT(truths.values<bool>(), ElementsAre(false, false, true, true, true));
  EXPECT_THAT(truths.to(DType::bf16).to(DType::f64).values<double>(), ElementsAre(0.0, 0.0, 1.0, 1.0, 1.0));
}

TEST(Copies, RoundOnceFromTheValueItself) {
  const double above_tie = std::nextafter(1.0 + 0x1p-11, 2.0);  // as a float, this would be the tie 1 + 2^-11
  EXPECT_EQ(static_cast<double>(Tensor::from<double>({1}, {above_tie}).to(DType::f16).values<float16>()[0]),
            1 + 0x1p-10);
  EXPECT_TRUE(std::isinf(static_cast<float>(Tensor::from<float>({1}, {65520.0F}).to(DType::f16).values<float16>()[0])));
  EXPECT_TRUE(std::isinf(Tensor::from<double>({1}, {1e300}).to(DType::f32).values<float>()[0]));
}

TEST(Copies, WriteThroughAnyStridesAndNothingBeside) {
  std::vector<float> memory(20, -1.0F);
  const Tensor source = counting({2, 3});
  copy(source, TensorView(memory.data() + 1, Dims{2, 3}, Dims{1, 4}));
  EXPECT_THAT(memory, ElementsAre(-1, 0, 3, -1, -1, 1, 4, -1, -1, 2, 5, -1, -1, -1, -1, -1, -1, -1, -1, -1));
  copy(source.view().transpose(0, 1), TensorView(memory.data(), Dims{3, 2}));
  EXPECT_THAT(std::vector(memory.begin(), memory.begin() + 6), ElementsAre(0, 3, 1, 4, 2, 5));
}

// ---------------------------------------------------------------- text

TEST(TensorText, ShapesAndDevicesReadAsInPython) {
  EXPECT_EQ(to_string(Dims{2, 8, 10, 64}), "(2, 8, 10, 64)");
  EXPECT_EQ(to_string(Dims{7}), "(7,)");
  EXPECT_EQ(to_string(Dims{}), "()");
  EXPECT_EQ(to_string(Device{}), "cpu");
  EXPECT_EQ(to_string(Device{Device::Kind::cuda, 1}), "cuda:1");
}

TEST(Heads, ATensorSplitsAndCombinesAsItsViewDoes) {
  Tensor x({2, 3, 8});
  const Tensor& fixed = x;
  EXPECT_EQ(split_heads(x, 4).strides(), split_heads(x.view(), 4).strides());
  EXPECT_EQ(split_heads(fixed, 4).strides(), split_heads(x.view(), 4).strides());
  Tensor heads({2, 1, 3, 8});
  EXPECT_EQ(combine_heads(heads).shape(), (Dims{2, 3, 8}));
}

TEST(TensorCopy, WithoutAConversionKeepsEveryBit) {
  bfloat16 signalling;
  signalling.bits = 0x7f81;  // a signalling NaN
  const ConstTensorView view(&signalling, {1});
  EXPECT_EQ(Tensor::copy_of(view).values<bfloat16>()[0].bits, 0x7f81);
}

}  // namespace
}  // namespace rapt
