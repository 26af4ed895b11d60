// Whether two tensors overlap is compared with lists of all their bytes. Calls accept slices of one tensor.
#include "attention/overlap.h"

#include <bit>
#include <cstdint>
#include <set>
#include <vector>

#include <gtest/gtest.h>

#include "rapt/attention.h"
#include "support/random_tensor.h"

namespace rapt::test {
namespace {

std::set<std::uintptr_t> all_bytes(const ConstTensorView& tensor) {
  std::set<std::uintptr_t> bytes;
  std::vector<std::int64_t> offsets = {0};
  for (int dim = 0; dim < tensor.rank(); ++dim) {
    std::vector<std::int64_t> next;
    for (const std::int64_t offset : offsets) {
      for (std::int64_t n = 0; n < tensor.size(dim); ++n) next.push_back(offset + n * tensor.stride(dim));
    }
    offsets = next;
  }
  for (const std::int64_t offset : offsets) {
    for (std::size_t n = 0; n < size_of(tensor.dtype()); ++n) {
      bytes.insert(reinterpret_cast<std::uintptr_t>(tensor.data()) +
                   static_cast<std::uintptr_t>(offset * static_cast<std::int64_t>(size_of(tensor.dtype()))) + n);
    }
  }
  return bytes;
}

// Tries strides that nest, do not nest, are negative or are 0, in several types, starting at any byte.
TEST(Overlap, IsWhatAListOfAllBytesSays) {
  constexpr DType kTypes[] = {DType::f32, DType::f64, DType::bf16, DType::boolean};
  std::vector<std::byte> memory(1 << 15);
  std::int64_t meet = 0, overlapping = 0;
  for (std::uint64_t seed = 0; seed < 4000; ++seed) {
    cases::Stream stream(seed);
    const auto draw = [&] {
      Dims shape, strides;
      const std::int64_t rank = stream.integer(0, 4);
      std::vector<std::int64_t> sizes, steps;
      std::int64_t nested = stream.integer(1, 3);
      for (std::int64_t dim = 0; dim < rank; ++dim) {
        sizes.push_back(stream.integer(stream.chance(0.05) ? 0 : 1, 4));
        const std::int64_t step = stream.chance(0.2) ? stream.integer(0, 40) : nested;
        nested = step * sizes.back() + stream.integer(0, 1) * stream.integer(1, 9);
        steps.push_back(stream.chance(0.2) ? -step : step);
      }
      shape = Dims(std::span<const std::int64_t>(sizes)), strides = Dims(std::span<const std::int64_t>(steps));
      return ConstTensorView(memory.data() + memory.size() / 2 + stream.integer(0, 300), kTypes[stream.integer(0, 3)],
                             shape, strides);
    };
    const ConstTensorView a = draw(), b = draw();
    const std::set<std::uintptr_t> of_a = all_bytes(a), of_b = all_bytes(b);
    bool shared = false;
    for (const std::uintptr_t byte : of_a) shared = shared || of_b.contains(byte);
    ASSERT_EQ(overlap(a, b), shared) << "seed " << seed;
    ASSERT_EQ(overlap(b, a), shared);
    meet += byte_range(a).meets(byte_range(b)) ? 1 : 0;
    overlapping += shared ? 1 : 0;
  }
  EXPECT_GT(overlapping, 500);
  EXPECT_GT(meet - overlapping, 300);  // interleaved
}

// q, k, v and the output are four slices of one (B, L, 4, H, D) tensor.
TEST(Overlap, IsNoneBetweenSlicesOfOneTensor) {
  Tensor all({2, 7, 4, 3, 8});  // (B, L, 4, H, D)
  const Tensor numbers = random({2, 7, 4, 3, 8});
  copy(numbers, all);
  const auto part = [&](std::int64_t n) { return all.view().select(2, n).transpose(1, 2); };
  const Tensor apart = attention(Tensor::copy_of(part(0)), Tensor::copy_of(part(1)), Tensor::copy_of(part(2)));
  attention({.out = part(3)}, part(0), part(1), part(2));
  EXPECT_TRUE(same_bits(part(3), apart));

  // The gradients are slices of another tensor.
  Tensor gradients({2, 7, 3, 3, 8});
  const auto gradient = [&](std::int64_t n) { return gradients.view().select(2, n).transpose(1, 2); };
  attention_backward({.dquery = gradient(0), .dkey = gradient(1), .dvalue = gradient(2)}, {.dout = apart}, part(0),
                     part(1), part(2));
  EXPECT_NE(gradient(2).at<float>(1, 2, 6, 7), 0.0F);
}

// Whether large tensors overlap is found at once, also if their elements interleave.
TEST(Overlap, IsFoundQuicklyInLargeTensors) {
  auto* memory = std::bit_cast<float*>(std::uintptr_t{1} << 30);  // not read
  const Dims shape{64, 4096, 32, 64};
  const ConstTensorView even(memory, shape, {4096 * 32 * 128, 32 * 128, 128, 2});
  const ConstTensorView odd(memory + 1, shape, {4096 * 32 * 128, 32 * 128, 128, 2});
  EXPECT_FALSE(overlap(even, odd));
  EXPECT_TRUE(overlap(even, ConstTensorView(memory + 2 * 4095, shape, {4096 * 32 * 128, 32 * 128, 128, 2})));
  const ConstTensorView halves(reinterpret_cast<bfloat16*>(memory) + 2, shape, {4096 * 32 * 256, 32 * 256, 256, 4});
  EXPECT_FALSE(overlap(even, halves));
  EXPECT_TRUE(overlap(odd, halves));
}

}  // namespace
}  // namespace rapt::test
