// The rotary embedding: its definition, and the same bits regardless of what surrounds a token.
#include "rapt/rotary.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "cases/case.h"
#include "support/allocations.h"
#include "support/random_tensor.h"

namespace rapt::test {
namespace {

constexpr DType kTypes[] = {DType::f32, DType::bf16, DType::f16, DType::f64};
constexpr RotaryPairs kPairs[] = {RotaryPairs::half_split, RotaryPairs::interleaved};

Tensor rotated(const Rotary& rotary, const ConstTensorView& x, const RotaryPositions& positions = {}) {
  Tensor y = Tensor::copy_of(x);
  rotary.apply(y, positions);
  return y;
}

// ---------------------------------------------------------------- meaning

TEST(RotaryBack, TurnsBackWhatWasTurned) {
  for (const DType dtype : {DType::f32, DType::f64}) {
    for (const RotaryPairs pairs : kPairs) {
      for (const bool strided : {false, true}) {
        const Rotary rotary(10, {.size = 8, .pairs = pairs, .max_positions = 20});
        Tensor memory = random({2, 3, 30, 10}, dtype);
        Tensor across({2, 3, 10, 30}, dtype);
        const TensorView x = strided ? across.view().transpose(2, 3) : memory.view();
        if (strided) copy(memory, x);
        const Tensor before = Tensor::copy_of(x, DType::f64);
        rotary.apply(x, 5);
        const Tensor turned = Tensor::copy_of(x, DType::f64);
        rotary.apply(x, 5, {.back = true});
        const Tensor after = Tensor::copy_of(x, DType::f64);
        double moved = 0.0;
        for (std::size_t n = 0; n < before.values<double>().size(); ++n) {
          moved = std::max(moved, std::abs(turned.values<double>()[n] - before.values<double>()[n]));
          ASSERT_NEAR(after.values<double>()[n], before.values<double>()[n], dtype == DType::f64 ? 1e-14 : 1e-6);
        }
        EXPECT_GT(moved, 0.5);
      }
    }
  }
}

// The formula, element by element.
TEST(Rotary, TurnsEachPairByItsPositionTimesItsFrequency) {
  for (const RotaryPairs pairs : kPairs) {
    const Rotary rotary(10, {.base = 100.0, .size = 6, .pairs = pairs});
    const Tensor x = random({2, 3, 4, 10}, DType::f64), y = rotated(rotary, x, 7);
    for (std::int64_t b = 0; b < 2; ++b) {
      for (std::int64_t h = 0; h < 3; ++h) {
        for (std::int64_t i = 0; i < 4; ++i) {
          for (std::int64_t d = 0; d < 3; ++d) {
            const std::int64_t first = pairs == RotaryPairs::half_split ? d : 2 * d;
            const std::int64_t second = pairs == RotaryPairs::half_split ? d + 3 : 2 * d + 1;
            const double angle = static_cast<double>(7 + i) * std::pow(100.0, -2.0 * static_cast<double>(d) / 6.0);
            const double x1 = x.view().at<double>(b, h, i, first), x2 = x.view().at<double>(b, h, i, second);
            EXPECT_NEAR(y.view().at<double>(b, h, i, first), x1 * std::cos(angle) - x2 * std::sin(angle), 1e-14);
            EXPECT_NEAR(y.view().at<double>(b, h, i, second), x2 * std::cos(angle) + x1 * std::sin(angle), 1e-14);
          }
        }
      }
    }
  }
}

TEST(Rotary, AtPositionZeroChangesNothing) {
  for (const DType dtype : kTypes) {
    const Tensor x = random({2, 3, 1, 16}, dtype);
    EXPECT_TRUE(same_bits(rotated(Rotary(16), x), x)) << name_of(dtype);
  }
}

TEST(Rotary, LeavesInQkOnlyTheDifferenceOfPositions) {
  const Tensor q = random({1, 1, 1, 64}, DType::f64, 1), k = random({1, 1, 1, 64}, DType::f64, 2);
  for (const RotaryPairs pairs : kPairs) {
    const Rotary rotary(64, {.pairs = pairs});
    const auto product = [&](std::int64_t q_at, std::int64_t k_at) {
      const Tensor turned_q = rotated(rotary, q, q_at), turned_k = rotated(rotary, k, k_at);
      double sum = 0.0;
      for (std::size_t d = 0; d < 64; ++d) sum += turned_q.values<double>()[d] * turned_k.values<double>()[d];
      return sum;
    };
    for (const std::int64_t difference : {0, 1, 17, 1000}) {
      for (const std::int64_t shift : {1, 5, 999, 100000}) {
        EXPECT_NEAR(product(difference, 0), product(difference + shift, shift), 1e-9) << difference << ' ' << shift;
      }
    }
    EXPECT_GT(std::abs(product(0, 0) - product(1, 0)), 0.01);
  }
}

TEST(Rotary, InterleavedIsHalfSplitWithTheNumbersPermuted) {
  for (const DType dtype : kTypes) {
    for (const std::int64_t size : {0, 12}) {
      const Rotary half_split(16, {.size = size}), interleaved(16, {.size = size, .pairs = RotaryPairs::interleaved});
      const std::int64_t half = half_split.size() / 2;
      const Tensor x = random({2, 2, 5, 16}, dtype);
      Tensor x_permuted = x.clone(), wanted = x.clone();
      const auto permute = [&](const Tensor& from, Tensor& to) {  // d -> 2d, d + half -> 2d + 1
        for (std::int64_t d = 0; d < half; ++d) {
          copy(from.view().slice(3, d, d + 1), to.view().slice(3, 2 * d, 2 * d + 1));
          copy(from.view().slice(3, d + half, d + half + 1), to.view().slice(3, 2 * d + 1, 2 * d + 2));
        }
      };
      permute(x, x_permuted);
      permute(rotated(half_split, x, 3), wanted);
      EXPECT_TRUE(same_bits(rotated(interleaved, x_permuted, 3), wanted)) << name_of(dtype) << ' ' << size;
    }
  }
}

TEST(Rotary, LeavesWhatLiesPastItsSizeUntouched) {
  for (const DType dtype : kTypes) {
    for (const RotaryPairs pairs : kPairs) {
      const Rotary rotary(24, {.size = 10, .pairs = pairs});
      const Tensor x = random({2, 3, 4, 24}, dtype), y = rotated(rotary, x, 100);
      EXPECT_TRUE(same_bits(y.view().slice(3, 10, 24), x.view().slice(3, 10, 24)));
      EXPECT_FALSE(same_bits(y.view().slice(3, 0, 10), x.view().slice(3, 0, 10)));
      // The rotated part has the same bits as in a head of only that size.
      const Rotary small(10, {.pairs = pairs});
      EXPECT_TRUE(same_bits(y.view().slice(3, 0, 10), rotated(small, x.view().slice(3, 0, 10), 100)));
    }
  }
}

TEST(Rotary, RoundsSixteenBitsOnceFromTheF32Result) {
  for (const DType dtype : {DType::bf16, DType::f16}) {
    for (const RotaryPairs pairs : kPairs) {
      const Rotary rotary(32, {.size = 30, .pairs = pairs, .max_positions = 20});
      const Tensor x = random({2, 3, 40, 32}, dtype);
      const Tensor wanted = rotated(rotary, x.to(DType::f32), 5).to(dtype);
      EXPECT_TRUE(same_bits(rotated(rotary, x, 5), wanted)) << name_of(dtype);
    }
  }
}

TEST(Rotary, MultipliesCosAndSinByTheAttentionFactor) {
  RotaryScaling::Yarn ramp;
  ramp.attention_factor = 2.0;
  const Tensor x = random({1, 2, 3, 8});
  const Tensor plain = rotated(Rotary(8, {.scaling = RotaryScaling::yarn(1.0, 64)}), x, 9);
  const Tensor twice = rotated(Rotary(8, {.scaling = RotaryScaling::yarn(1.0, 64, ramp)}), x, 9);
  for (std::size_t n = 0; n < 48; ++n) EXPECT_EQ(twice.values<float>()[n], 2.0F * plain.values<float>()[n]);
}

TEST(Rotary, SaysWhatItIs) {
  const Rotary rotary(80, {.size = 32, .max_positions = 7});
  EXPECT_EQ(rotary.head_size(), 80);
  EXPECT_EQ(rotary.size(), 32);
  EXPECT_EQ(rotary.frequencies().size(), 16U);
  EXPECT_EQ(rotary.attention_factor(), 1.0);
  EXPECT_EQ(rotary.max_positions(), 7);
}

// ---------------------------------------------------------------- same bits

TEST(Rotary, WithAnOffsetHasTheBitsOfALongerInputCut) {
  for (const DType dtype : kTypes) {
    for (const RotaryPairs pairs : kPairs) {
      for (const std::int64_t max_positions : {0, 50, 2000}) {
        const Rotary rotary(20, {.size = 18, .pairs = pairs, .max_positions = max_positions});
        const Tensor x = random({2, 3, 1000, 20}, dtype), whole = rotated(rotary, x);
        for (const auto& [begin, end] : std::vector<std::pair<std::int64_t, std::int64_t>>{
                 {0, 1}, {1, 2}, {999, 1000}, {3, 70}, {49, 51}, {400, 1000}}) {
          const Tensor part = rotated(rotary, x.view().slice(2, begin, end), begin);
          ASSERT_TRUE(same_bits(part, whole.view().slice(2, begin, end))) << begin << ' ' << name_of(dtype);
        }
      }
    }
  }
}

TEST(Rotary, HasTheSameBitsWithAndWithoutATable) {
  for (const DType dtype : kTypes) {
    const Tensor x = random({2, 3, 200, 32}, dtype);
    const RotaryScaling scaling = RotaryScaling::yarn(4.0, 64);
    const Tensor wanted = rotated(Rotary(32, {.scaling = scaling}), x, 1000);
    for (const std::int64_t max_positions : {1, 1000, 1077, 1200, 5000}) {
      const Rotary rotary(32, {.scaling = scaling, .max_positions = max_positions});
      EXPECT_TRUE(same_bits(rotated(rotary, x, 1000), wanted)) << max_positions;
    }
  }
}

TEST(Rotary, TakesAnOffsetForEachRowAndAPositionForEachToken) {
  for (const std::int64_t max_positions : {0, 60, 500}) {
    const Rotary rotary(16, {.max_positions = max_positions});
    const Tensor x = random({3, 2, 5, 16});
    const std::vector<std::int64_t> offsets = {40, 0, 57};
    std::vector<std::int64_t> positions;
    Tensor wanted({3, 2, 5, 16});
    for (std::int64_t b = 0; b < 3; ++b) {
      const std::int64_t offset = offsets[static_cast<std::size_t>(b)];
      copy(rotated(rotary, x.view().slice(0, b, b + 1), offset), wanted.view().slice(0, b, b + 1));
      for (std::int64_t i = 0; i < 5; ++i) positions.push_back(offset + i);
    }
    EXPECT_TRUE(same_bits(rotated(rotary, x, RotaryPositions::rows(offsets)), wanted));
    EXPECT_TRUE(same_bits(rotated(rotary, x, RotaryPositions::tokens(positions)), wanted));
    // Positions in any order, and one position twice.
    const std::vector<std::int64_t> mixed = {9, 100, 0, 9, 3};
    const Tensor one = Tensor::copy_of(x.view().slice(0, 0, 1));
    const Tensor got = rotated(rotary, one, RotaryPositions::tokens(mixed));
    for (std::int64_t i = 0; i < 5; ++i) {
      const Tensor token = rotated(rotary, one.view().slice(2, i, i + 1), mixed[static_cast<std::size_t>(i)]);
      EXPECT_TRUE(same_bits(got.view().slice(2, i, i + 1), token)) << i;
    }
  }
}

// (2, 3, 40, 12) within a larger buffer, in common memory layouts.
TensorView placed(Tensor& memory, int how) {
  const TensorView all = memory;  // (97, 97)
  const Dims shape{2, 3, 40, 12};
  const DType dtype = memory.dtype();
  auto* begin = static_cast<std::byte*>(all.data());
  switch (how) {
    case 0: return {begin, dtype, shape};
    case 1: return TensorView(begin, dtype, {2, 40, 3, 12}).transpose(1, 2);
    case 2: return TensorView(begin, dtype, {2, 3, 12, 40}).transpose(2, 3);
    case 3: return {begin, dtype, shape, {4300, 1410, 35, 2}};
    case 4: return {begin + size_of(dtype), dtype, shape, {1, 13 * 2, 13 * 2 * 3, 2}};
    case 5: return {begin + 5000 * size_of(dtype), dtype, shape, {-1440, -480, -12, -1}};
    default: return {begin + 3 * size_of(dtype), dtype, shape, {1500, 500, 12, 1}};
  }
}

TEST(Rotary, TakesAnyStridesAndWritesNothingAround) {
  for (const DType dtype : kTypes) {
    for (const RotaryPairs pairs : kPairs) {
      const Rotary rotary(12, {.size = 10, .pairs = pairs, .max_positions = 30});
      const Tensor x = random({2, 3, 40, 12}, dtype), wanted = rotated(rotary, x, 3);
      for (int from_how = 0; from_how < 7; ++from_how) {
        Tensor from_memory = random({97, 97}, dtype, 5);
        const TensorView from = placed(from_memory, from_how);
        copy(x, from);
        const Tensor from_before = from_memory.clone();
        for (int to_how = 0; to_how < 7; ++to_how) {
          Tensor to_memory = random({97, 97}, dtype, 6), around = to_memory.clone();
          copy(wanted, placed(around, to_how));
          rotary.apply(from, placed(to_memory, to_how), 3);
          ASSERT_TRUE(same_bits(to_memory, around)) << name_of(dtype) << ' ' << from_how << ' ' << to_how;
        }
        ASSERT_TRUE(same_bits(from_memory, from_before));
        rotary.apply(from, 3);
        Tensor around = from_before.clone();
        copy(wanted, placed(around, from_how));
        ASSERT_TRUE(same_bits(from_memory, around)) << "in place, " << name_of(dtype) << ' ' << from_how;
      }
    }
  }
}

TEST(Rotary, GoesFromOneTypeToAnotherWithOneRounding) {
  for (const DType from : {DType::f32, DType::bf16, DType::f16}) {
    for (const DType to : {DType::f32, DType::bf16, DType::f16}) {
      for (const RotaryPairs pairs : kPairs) {
        const Rotary rotary(12, {.size = 8, .pairs = pairs, .max_positions = 4});
        const Tensor x = random({2, 3, 7, 12}, from);
        Tensor y({2, 3, 7, 12}, to), strided({2, 3, 12, 7}, to);
        rotary.apply(x, y, 2);
        rotary.apply(x, strided.view().transpose(2, 3), 2);
        EXPECT_TRUE(same_bits(y, rotated(rotary, x.to(DType::f32), 2).to(to))) << name_of(from) << ' ' << name_of(to);
        EXPECT_TRUE(same_bits(y, strided.view().transpose(2, 3))) << name_of(from) << ' ' << name_of(to);
      }
    }
  }
}

TEST(Rotary, HasTheSameBitsForAnyNumberOfThreads) {
  for (const DType dtype : kTypes) {
    for (const std::int64_t max_positions : {0, 300}) {
      const Rotary rotary(64, {.max_positions = max_positions});
      const Tensor x = random({3, 4, 501, 64}, dtype);
      Tensor wanted(x.shape(), dtype);
      rotary.apply(x, wanted, 11, {.threads = 1});
      for (const int threads : {2, 7}) {
        Tensor y(x.shape(), dtype);
        rotary.apply(x, y, 11, {.threads = threads});
        EXPECT_TRUE(same_bits(y, wanted)) << threads;
        y = x.clone();
        rotary.apply(y, 11, {.threads = threads});
        EXPECT_TRUE(same_bits(y, wanted)) << threads << ", in place";
      }
      // A caller's own threads, one for each task.
      Tensor y(x.shape(), dtype);
      std::int64_t tasks = 0;
      const ParallelFor own = [&](std::int64_t count, const Task& task) {
        std::vector<std::thread> all;
        for (std::int64_t n = 0; n < count; ++n) all.emplace_back([&task, n] { task(n); });
        for (std::thread& each : all) each.join();
        tasks += count;
      };
      rotary.apply(x, y, 11, {.threads = 3, .parallel_for = own});
      EXPECT_TRUE(same_bits(y, wanted));
      EXPECT_EQ(tasks, 3);
    }
  }
}

TEST(Rotary, MakesTheSameTableOnAnyNumberOfThreads) {
  const Tensor x = random({1, 1, 3000, 16});
  const Tensor wanted = rotated(Rotary(16, {.max_positions = 3000, .threads = 1}), x);
  EXPECT_TRUE(same_bits(rotated(Rotary(16, {.max_positions = 3000, .threads = 7}), x), wanted));
}

TEST(Rotary, KeepsANotFiniteNumberInItsPair) {
  for (const float value : {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
    const Tensor x = random({1, 2, 9, 16});
    Tensor bad = x.clone();
    bad.view().at<float>(0, 1, 4, 3) = value;
    const Tensor y = rotated(Rotary(16), x, 1), bad_y = rotated(Rotary(16), bad, 1);
    for (std::int64_t n = 0; n < x.count(); ++n) {
      const std::int64_t in_row = n - (9 + 4) * 16;
      const auto at = static_cast<std::size_t>(n);
      if (in_row == 3 || in_row == 11) {
        EXPECT_FALSE(std::isfinite(bad_y.values<float>()[at]));
      } else {
        EXPECT_EQ(bad_y.values<float>()[at], y.values<float>()[at]);
      }
    }
  }
}

// ---------------------------------------------------------------- sizes and memory

TEST(Rotary, TakesHeadsOfAnySize) {
  for (const RotaryPairs pairs : kPairs) {
    for (const std::int64_t size : {2, 4, 6, 30, 66, 1022, 1024, 1026, 2050, 3000}) {  // the last ones in chunks
      const Rotary rotary(size + 1, {.size = size, .pairs = pairs, .max_positions = 3});
      const Tensor x = random({1, 2, 5, size + 1}, DType::f64);
      const Tensor y = rotated(rotary, x.to(DType::f32)).to(DType::f64), wide = rotated(rotary, x);
      for (std::size_t n = 0; n < y.values<double>().size(); ++n) {
        ASSERT_NEAR(y.values<double>()[n], wide.values<double>()[n], 5e-7) << size;
      }
      Tensor narrow(x.shape(), DType::bf16);
      rotary.apply(x.to(DType::f32), narrow);
      EXPECT_TRUE(same_bits(narrow, rotated(rotary, x.to(DType::f32)).to(DType::bf16))) << size;
    }
  }
}

TEST(Rotary, TakesEmptyTensors) {
  const Rotary rotary(8);
  for (const Dims& shape : {Dims{0, 2, 3, 8}, Dims{2, 0, 3, 8}, Dims{2, 2, 0, 8}}) {
    Tensor x(shape), y(shape);
    rotary.apply(x);
    rotary.apply(x, y, 5);
  }
}

TEST(Rotary, AllocatesNothing) {
  if (!kCountsAllocations) GTEST_SKIP() << "a sanitizer has an operator new of its own";
  for (const DType dtype : kTypes) {
    for (const std::int64_t length : {1, 1000}) {
      for (const int threads : {1, 2}) {
        const Rotary rotary(64, {.max_positions = 100});
        Tensor x = random({2, 4, length, 64}, dtype), y(x.shape(), dtype);
        const std::vector<std::int64_t> offsets = {3, 7};
        const RotaryCall call{.threads = threads};
        const auto run = [&] {
          rotary.apply(x, 50, call);
          rotary.apply(x, y, RotaryPositions::rows(offsets), call);
        };
        run();  // the pool starts its threads here
        const std::int64_t before = allocation_count();
        run();
        EXPECT_EQ(allocation_count(), before) << name_of(dtype) << ' ' << length << ' ' << threads;
      }
    }
  }
}

}  // namespace
}  // namespace rapt::test
