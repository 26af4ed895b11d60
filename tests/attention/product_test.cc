// The packed matrix product is close to the reference for any shape, type and stride, and a row has the same bits
// whatever surrounds it.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "cases/case.h"
#include "rapt/packed_matrix.h"
#include "support/allocations.h"
#include "support/every_instruction_set.h"
#include "support/expect_error.h"
#include "support/random_tensor.h"

namespace rapt::test {
namespace {

class Product : public EveryInstructionSet {};
RAPT_ON_EVERY_INSTRUCTION_SET(Product);

constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();
constexpr DType kTypes[] = {DType::f32, DType::bf16, DType::f16};

// The memory layout of a matrix.
enum class Lay { plain, gaps, spread, transposed, backwards };
constexpr Lay kLays[] = {Lay::plain, Lay::gaps, Lay::spread, Lay::transposed, Lay::backwards};

// A (rows, columns) matrix surrounded by NaN.
struct Placed {
  Placed(std::int64_t rows, std::int64_t columns, DType dtype, Lay lay = Lay::plain)
      : memory({2 * rows + 2, 2 * columns + 5}, DType::f32) {
    std::ranges::fill(memory.values<float>(), kNaN);
    memory = memory.to(dtype);
    TensorView all = memory.view();
    if (lay == Lay::plain) {
      all = TensorView(memory.view().data(), dtype, {rows, columns});
    } else if (lay == Lay::transposed) {
      all = TensorView(memory.view().data(), dtype, {columns, rows}).transpose(0, 1);
    } else if (lay == Lay::backwards) {
      auto* last = static_cast<std::byte*>(all.data()) + static_cast<std::size_t>(rows * columns) * size_of(dtype);
      all = TensorView(last, dtype, {rows, columns}, {-columns, -1});
    } else if (lay == Lay::spread) {
      all = TensorView(all.data(), dtype, {rows, columns}, {2 * columns + 5, 2});
    } else {
      all = all.slice(0, 1, rows + 1).slice(1, 3, columns + 3);
    }
    view = all;
  }
  void fill(std::uint32_t seed) const {
    cases::Stream stream(seed);
    Tensor values(view.shape());
    for (float& value : values.values<float>()) value = static_cast<float>(2.0 * stream.uniform() - 1.0);
    copy(values, view);
  }

  Tensor memory;
  TensorView view;
};

struct Spec {
  std::int64_t rows = 1, inputs = 1, outputs = 1;
  DType x = DType::f32, given = DType::f32, stored = DType::f32, y = DType::f32;
  std::optional<DType> bias{};
  Lay x_lay = Lay::plain, weight_lay = Lay::plain, y_lay = Lay::plain;

  std::string name() const {
    const auto of = [](DType dtype) { return std::string(name_of(dtype)); };
    return "M " + std::to_string(rows) + " K " + std::to_string(inputs) + " N " + std::to_string(outputs) + " x " +
           of(x) + " W " + of(given) + " as " + of(stored) + " y " + of(y) + " bias " + (bias ? of(*bias) : "none") +
           " lays " + std::to_string(static_cast<int>(x_lay)) + std::to_string(static_cast<int>(weight_lay)) +
           std::to_string(static_cast<int>(y_lay));
  }
};

struct Call {
  explicit Call(const Spec& spec)
      : x(spec.rows, spec.inputs, spec.x, spec.x_lay),
        weight(spec.outputs, spec.inputs, spec.given, spec.weight_lay),
        y(spec.rows, spec.outputs, spec.y, spec.y_lay),
        bias(1, spec.outputs, spec.bias.value_or(DType::f32), spec.x_lay) {
    x.fill(1), weight.fill(2), bias.fill(3);
    if (spec.bias) options.bias = bias.view.select(0, 0);
    matrix = PackedMatrix(weight.view, {.dtype = spec.stored});
  }
  void run() const { matrix.multiply(x.view, y.view, options); }

  Placed x, weight, y, bias;
  ProductOptions options;
  PackedMatrix matrix;
};

// x · Wᵀ + bias in double, from the stored values or, if `absolute`, from their magnitudes.
Tensor in_double(const Spec& spec, const Call& call, bool absolute) {
  const auto wide = [&](const ConstTensorView& view, DType through) {
    Tensor values = Tensor::copy_of(view, through).to(DType::f64);
    for (double& value : values.values<double>()) value = absolute ? std::abs(value) : value;
    return values;
  };
  const Tensor x = wide(call.x.view, spec.x), weight = wide(call.weight.view, spec.stored);
  Tensor bias, y({spec.rows, spec.outputs}, DType::f64);
  if (spec.bias) bias = wide(call.options.bias, *spec.bias);
  PackedMatrix(weight).multiply(x, y, {.bias = spec.bias ? ConstTensorView(bias) : ConstTensorView()});
  return y;
}

// The maximum error of one rounding to a type: relative, and absolute near zero.
struct Rounding {
  double relative, absolute;
};
Rounding rounding_of(DType dtype) {
  if (dtype == DType::bf16) return {0x1p-8, 0.0};
  return dtype == DType::f16 ? Rounding{0x1p-11, 0x1p-25} : Rounding{0x1p-24, 0.0};
}

void expect_near_the_reference(const Spec& spec) {
  const Call call(spec);
  const Tensor before = call.y.memory.clone();
  call.run();
  const Tensor got = Tensor::copy_of(call.y.view, DType::f64);
  const Tensor wanted = in_double(spec, call, false), size = in_double(spec, call, true);
  const auto [relative, absolute] = rounding_of(spec.y);
  for (std::size_t n = 0; n < got.values<double>().size(); ++n) {
    const double sums = size.values<double>()[n] * static_cast<double>(2 * spec.inputs + 2) * 0x1p-24;
    const double error = std::abs(got.values<double>()[n] - wanted.values<double>()[n]);
    ASSERT_LE(error, sums + absolute + relative * (std::abs(wanted.values<double>()[n]) + sums)) << spec.name();
  }
  // Checks that nothing was written around y: the memory from before the call, with y's results copied in, must equal
  // the memory after the call.
  Tensor after = before.clone();
  const auto* start = static_cast<const std::byte*>(call.y.memory.view().data());
  const auto offset = static_cast<const std::byte*>(call.y.view.data()) - start;
  const TensorView place(static_cast<std::byte*>(after.view().data()) + offset, spec.y, call.y.view.shape(),
                         call.y.view.strides());
  copy(call.y.view, place);
  ASSERT_TRUE(same_bits(after, call.y.memory)) << "memory around y was written: " << spec.name();
}

TEST_P(Product, IsNearTheReferenceForEveryOddShape) {
  std::size_t n = 0;
  for (const std::int64_t rows : {0, 1, 2, 3, 5, 7, 8, 33}) {
    for (const std::int64_t inputs : {0, 1, 3, 17, 128, 1000}) {
      for (const std::int64_t outputs : {1, 7, 8, 23, 24, 25, 48, 49, 100}) {
        Spec spec{.rows = rows, .inputs = inputs, .outputs = outputs};
        spec.stored = spec.given = kTypes[n % 3];
        if (n % 2 == 0) spec.bias = DType::f32;
        if (n % 5 == 0) spec.y = DType::bf16;
        expect_near_the_reference(spec);
        if (HasFatalFailure()) return;
        ++n;
      }
    }
  }
}

TEST_P(Product, IsNearTheReferenceForEveryMixOfTypes) {
  for (const DType x : kTypes) {
    for (const DType stored : kTypes) {
      for (const DType y : kTypes) {
        for (const DType other : kTypes) {  // W as given, and bias
          for (const std::int64_t rows : {1, 3, 13}) {
            expect_near_the_reference({rows, 61, 53, x, other, stored, y, other});
          }
          if (HasFatalFailure()) return;
        }
      }
    }
  }
}

// With this many inputs, sums are kept in memory between parts of k.
TEST_P(Product, IsNearTheReferenceForManyInputs) {
  for (const DType type : kTypes) {
    for (const std::int64_t rows : {1, 9, 20}) {
      expect_near_the_reference({rows, 2051, 50, type, type, type, type, type});
      expect_near_the_reference({rows, 2051, 50, type, type, type, DType::f32, type, Lay::gaps, Lay::plain, Lay::gaps});
      if (HasFatalFailure()) return;
    }
  }
}

TEST_P(Product, IsNearTheReferenceForEveryLayout) {
  for (const Lay x : kLays) {
    for (const Lay weight : kLays) {
      for (const Lay y : kLays) {
        for (const DType type : kTypes) {
          expect_near_the_reference({9, 20, 51, type, type, type, type, type, x, weight, y});
          if (HasFatalFailure()) return;
        }
      }
    }
  }
}

TEST_P(Product, ThatStartsFromAnotherGoesOnWithItsChains) {
  struct Shape {
    std::int64_t rows, inputs, outputs;
  };
  for (const auto [rows, inputs, outputs] :
       {Shape{1, 40, 100}, Shape{7, 33, 5}, Shape{130, 21, 97}, Shape{9, 2200, 50}}) {
    for (const Lay lay : kLays) {
      Spec spec{.rows = rows, .inputs = inputs, .outputs = outputs, .x_lay = lay, .weight_lay = lay, .y_lay = lay};
      const Call call(spec);
      call.run();
      const std::int64_t middle = inputs / 3;
      const Placed parts(rows, outputs, DType::f32, lay);
      const auto add = [&](std::int64_t first, std::int64_t last, const ConstTensorView& start) {
        PackedMatrix(call.weight.view.slice(1, first, last))
            .multiply(call.x.view.slice(1, first, last), parts.view, {.threads = 2, .start = start});
      };
      add(0, middle, {});
      add(middle, inputs, parts.view);
      EXPECT_TRUE(same_bits(call.y.view, parts.view)) << spec.name();
    }
  }
}

TEST_P(Product, MayStartFromMemoryOfItsOwnAndOfAnyType) {
  for (const DType dtype : kTypes) {
    const Call call(Spec{.rows = 6, .inputs = 10, .outputs = 21});
    const Tensor start = random({6, 21}, dtype, 4), widened = start.to(DType::f32);
    Tensor in_place = widened.clone();
    call.matrix.multiply(call.x.view, in_place, {.start = in_place});
    call.matrix.multiply(call.x.view, call.y.view, {.start = start});
    EXPECT_TRUE(same_bits(call.y.view, in_place)) << name_of(dtype);
    EXPECT_TRUE(same_bits(start.to(DType::f32), widened)) << "start was written";
  }
}

TEST_P(Product, RoundsWeightsOnceFromF64) {
  // The weights are just above a tie, of bf16 and of f16. Rounded to f32 first, each would become the tie, and would
  // then be rounded down to even.
  const Tensor weight = Tensor::from<double>({1, 2}, {1.0 + 0x1p-8 + 0x1p-40, 1.0 + 0x1p-11 + 0x1p-40});
  const Tensor x = Tensor::from<float>({2, 2}, {1, 0, 0, 1});
  Tensor y({2, 1});
  PackedMatrix(weight, {.dtype = DType::bf16}).multiply(x, y);
  EXPECT_EQ(y.values<float>()[0], 1.0F + 0x1p-7F);
  PackedMatrix(weight, {.dtype = DType::f16}).multiply(x, y);
  EXPECT_EQ(y.values<float>()[1], 1.0F + 0x1p-10F);
}

// ---------------------------------------------------------------- same bits

// A product with several parts of k, several panels and a narrow one, and several blocks of rows.
Spec large(DType type) { return {1000, 1030, 58, type, type, type, type, type}; }

TEST_P(Product, OfARowAloneHasTheBitsOfThatRowAmongAThousand) {
  for (const DType type : kTypes) {
    const Call call(large(type));
    call.run();
    for (const std::int64_t count : {1, 2, 3, 4, 5, 7, 8, 9, 31, 100, 257}) {
      for (const std::int64_t first : {0, 1, 130, 998}) {
        const std::int64_t last = std::min<std::int64_t>(first + count, 1000);
        Tensor y({last - first, call.y.view.size(1)}, type);
        call.matrix.multiply(call.x.view.slice(0, first, last), y, call.options);
        ASSERT_TRUE(same_bits(y, call.y.view.slice(0, first, last))) << first << ' ' << count << ' ' << name_of(type);
      }
    }
  }
}

TEST_P(Product, OfAColumnAloneHasTheBitsOfThatColumnAmongMany) {
  for (const DType type : kTypes) {
    Call call(large(type));
    call.run();
    const PackedMatrix one(call.weight.view.slice(0, 50, 51));
    Tensor y({1000, 1}, type);
    one.multiply(call.x.view, y, {.bias = call.options.bias.slice(0, 50, 51)});
    EXPECT_TRUE(same_bits(y, call.y.view.slice(1, 50, 51))) << name_of(type);
  }
}

TEST_P(Product, HasTheSameBitsForAnyNumberOfThreads) {
  for (const DType type : kTypes) {
    for (const std::int64_t rows : {1, 3, 40, 300}) {
      Spec spec = large(type);
      spec.rows = rows, spec.outputs = 700;
      spec.inputs = rows == 300 ? 300 : 1030;
      Call call(spec);
      call.options.threads = 1;
      call.run();
      const Tensor wanted = Tensor::copy_of(call.y.view);
      for (const int threads : {2, 3, 7}) {
        copy(Tensor({rows, spec.outputs}, type), call.y.view);
        call.options.threads = threads;
        call.run();
        ASSERT_TRUE(same_bits(call.y.view, wanted)) << threads << " threads, " << spec.name();
      }
      // A caller's own threads, one for each task.
      call.options.parallel_for = [](std::int64_t count, const Task& task) {
        std::vector<std::thread> all;
        for (std::int64_t n = 0; n < count; ++n) all.emplace_back([&task, n] { task(n); });
        for (std::thread& each : all) each.join();
      };
      copy(Tensor({rows, spec.outputs}, type), call.y.view);
      call.run();
      ASSERT_TRUE(same_bits(call.y.view, wanted)) << "own threads, " << spec.name();
    }
  }
}

TEST_P(Product, HasTheSameBitsWhereverMemoryLies) {
  for (const DType type : kTypes) {
    for (const std::int64_t rows : {1, 6, 50}) {
      Spec spec{rows, 61, 75, type, type, type, type, type};
      const Call plain(spec);
      plain.run();
      for (const Lay lay : kLays) {
        spec.x_lay = spec.weight_lay = spec.y_lay = lay;
        const Call call(spec);
        call.run();
        ASSERT_TRUE(same_bits(call.y.view, plain.y.view)) << spec.name();
      }
      for (std::int64_t shift = 1; shift < 17; shift += 5) {  // elements past a boundary
        const auto moved = [&](const ConstTensorView& view) { return Placed(view.size(0), view.size(1) + 20, type); };
        const Placed x = moved(plain.x.view), weight = moved(plain.weight.view), y = moved(plain.y.view);
        const TensorView x_view = x.view.slice(1, shift, shift + 61), y_view = y.view.slice(1, shift, shift + 75);
        const TensorView weight_view = weight.view.slice(1, shift, shift + 61);
        copy(plain.x.view, x_view), copy(plain.weight.view, weight_view);
        PackedMatrix(weight_view).multiply(x_view, y_view, plain.options);
        ASSERT_TRUE(same_bits(y_view, plain.y.view)) << shift << ' ' << spec.name();
      }
    }
  }
}

TEST_P(Product, StaysWithTheInstructionSetThatPackedIt) {
  const Call call({9, 100, 60});
  call.run();
  const Tensor wanted = Tensor::copy_of(call.y.view);
  for (const std::string& other : instruction_sets_here()) {
    use_instruction_set(other);
    copy(Tensor({9, 60}), call.y.view);
    call.run();
    EXPECT_TRUE(same_bits(call.y.view, wanted)) << other;
  }
}

TEST_P(Product, OfSeveralCallsAtOnceIsTheSame) {
  const Call call({64, 300, 200});
  call.run();
  std::vector<Tensor> results;
  for (int n = 0; n < 4; ++n) results.emplace_back(Dims{64, 200});
  std::vector<std::thread> threads;
  for (Tensor& result : results) threads.emplace_back([&] { call.matrix.multiply(call.x.view, result); });
  for (std::thread& thread : threads) thread.join();
  for (const Tensor& result : results) EXPECT_TRUE(same_bits(result, call.y.view));
}

// ---------------------------------------------------------------- not finite

TEST_P(Product, KeepsWhatIsNotFiniteInItsRowAndColumn) {
  for (const float value : {kNaN, std::numeric_limits<float>::infinity()}) {
    for (const std::int64_t rows : {1, 2, 4, 7, 33}) {
      Call call({rows, 50, 60});
      call.run();
      const Tensor good = Tensor::copy_of(call.y.view);
      const std::int64_t bad_row = rows / 2, bad_column = 49;
      call.x.view.at<float>(bad_row, 20) = value;
      call.weight.view.at<float>(bad_column, 30) = value;
      call.matrix = PackedMatrix(call.weight.view);
      call.run();
      for (std::int64_t m = 0; m < rows; ++m) {
        for (std::int64_t n = 0; n < 60; ++n) {
          const float got = call.y.view.at<float>(m, n);
          const bool reached = m == bad_row || n == bad_column;
          ASSERT_TRUE(reached ? !std::isfinite(got) : got == good.view().at<float>(m, n)) << m << ' ' << n;
        }
      }
    }
  }
}

TEST_P(Product, KeepsSubnormalsOfSixteenBits) {
  const Tensor weight = Tensor::from<float>({2, 1}, {0x1p-24F, -0x1p-20F}).to(DType::f16);
  const Tensor x = Tensor::from<float>({1, 1}, {3.0F});
  Tensor y({1, 2});
  PackedMatrix(weight).multiply(x, y);
  EXPECT_EQ(y.values<float>()[0], 3.0F * 0x1p-24F);
  EXPECT_EQ(y.values<float>()[1], -3.0F * 0x1p-20F);
}

// ---------------------------------------------------------------- memory

TEST_P(Product, AllocatesNothingWithAWorkspace) {
  if (!kCountsAllocations) GTEST_SKIP() << "a sanitizer has an operator new of its own";
  for (const std::int64_t rows : {0, 1, 5, 40, 300}) {
    for (const int threads : {1, 2}) {
      Spec spec{rows, 1100, 100, DType::f32, DType::bf16, DType::bf16, DType::bf16, DType::f16};
      Call call(spec);
      call.options.threads = threads;
      std::vector<std::byte> workspace(call.matrix.workspace_bytes(call.x.view, call.y.view, call.options));
      call.options.workspace = workspace;
      call.run();  // the pool starts its threads here
      const std::int64_t before = allocation_count();
      call.run();
      EXPECT_EQ(allocation_count(), before) << threads << " threads, " << spec.name();
    }
  }
}

TEST_P(Product, TakesItsWorkspaceFromAnyAddressAndNotBelowItsSize) {
  Call call({40, 1100, 100, DType::bf16});
  call.run();
  const Tensor wanted = Tensor::copy_of(call.y.view);
  const std::size_t bytes = call.matrix.workspace_bytes(call.x.view, call.y.view, call.options);
  std::vector<std::byte> memory(bytes + 64);
  for (std::size_t shift = 0; shift < 64; shift += 7) {
    call.options.workspace = std::span(memory).subspan(shift, bytes);
    call.run();
    EXPECT_TRUE(same_bits(call.y.view, wanted));
  }
  call.options.workspace = std::span(memory).first(bytes - 1);
  EXPECT_THROW(call.run(), Error);
}

TEST_P(Product, NeedsAWorkspaceThatDoesNotGrowWithRows) {
  const PackedMatrix matrix(Tensor({1024, 4096}, DType::bf16));
  const auto bytes_for = [&](std::int64_t rows) {
    Tensor x({rows, 4096}), y({rows, 1024});
    return matrix.workspace_bytes(x, y, {.threads = 1});
  };
  EXPECT_LE(bytes_for(4000), std::size_t{2} << 20);
}

// ---------------------------------------------------------------- f64, and what is refused

TEST(ProductInF64, IsComputedInF64) {
  const Tensor weight = Tensor::from<double>({1, 2}, {1.0, 0x1p-40});
  const Tensor x = Tensor::from<double>({1, 2}, {1.0, 1.0});
  const Tensor bias = Tensor::from<double>({1}, {0x1p-41});
  Tensor y({1, 1}, DType::f64);
  PackedMatrix(weight).multiply(x, y, {.bias = bias});
  EXPECT_EQ(y.values<double>()[0], 1.0 + 0x1p-40 + 0x1p-41);
}

TEST(ProductCopies, ShareThePackedNumbers) {
  const Call call({3, 20, 30});
  call.run();
  const PackedMatrix copied = call.matrix;  // NOLINT(performance-unnecessary-copy-initialization): the test's point
  Tensor y({3, 30});
  copied.multiply(call.x.view, y);
  EXPECT_TRUE(same_bits(y, call.y.view));
  EXPECT_EQ(copied.outputs(), 30);
  EXPECT_EQ(copied.inputs(), 20);
  EXPECT_EQ(copied.dtype(), DType::f32);
  EXPECT_GE(copied.bytes(), 20U * 30U * 4U);
  EXPECT_EQ(PackedMatrix().bytes(), 0U);
}

TEST(ProductErrors, SayWhatAMatrixMustBe) {
  const Tensor cube({2, 3, 4});
  expect_error([] { (void)PackedMatrix(ConstTensorView()); }, "PackedMatrix: weight is missing; give a tensor");
  expect_error([&] { (void)PackedMatrix(cube); }, "PackedMatrix: weight has shape (2, 3, 4); it must be (N, K)");
  expect_error(
      [] {
        (void)PackedMatrix(Tensor({2, 3}, DType::boolean));
      },
      "PackedMatrix: weight is bool; it must be f32, f64, bf16 or f16");
  expect_error(
      [] {
        (void)PackedMatrix(Tensor({2, 3}), {.dtype = DType::boolean});
      },
      "PackedMatrix: dtype is bool; it must be f32, f64, bf16 or f16");
  expect_error(
      [] {
        (void)PackedMatrix(Tensor({2, 3}, DType::f64), {.engine = Engine::cpu});
      },
      "PackedMatrix: the cpu engine works in f32; f64 goes to the reference engine");
  expect_error(
      [] {
        (void)PackedMatrix(Tensor({2, 3}), {.threads = -1});
      },
      "PackedMatrix: threads is -1; it must be positive, or 0 for all");
}

TEST(ProductErrors, SayWhatACallMustBeAndWriteNothing) {
  const PackedMatrix matrix(Tensor({5, 4})), wide(Tensor({5, 4}, DType::f64));
  const Tensor x({3, 4}), bias({5}), flat({4}), y_memory({3, 5});
  Tensor y({3, 5});
  std::ranges::fill(y.values<float>(), 7.0F);
  const std::string call = "PackedMatrix::multiply: ";
  const auto refused = [&](const PackedMatrix& by, const ConstTensorView& input, const TensorView& output,
                           const ProductOptions& options, const std::string& because) {
    expect_error([&] { by.multiply(input, output, options); }, call + because);
    EXPECT_TRUE(std::ranges::all_of(y.values<float>(), [](float value) { return value == 7.0F; })) << because;
  };
  refused(PackedMatrix(), x, y, {}, "the matrix is empty; give it weights first");
  refused(matrix, {}, y, {}, "x is missing; give a tensor");
  refused(matrix, Tensor({3, 6}), y, {}, "x has shape (3, 6); it must be (M, K), with K = 4 as in the matrix");
  refused(matrix, flat, y, {}, "x has shape (4,); it must be (M, K), with K = 4 as in the matrix");
  refused(matrix, Tensor({3, 4}, DType::f64), y, {}, "x is f64; it must be f32, bf16 or f16");
  refused(matrix, x, y.view().slice(0, 0, 2), {}, "y has shape (2, 5); it must be (M, N) = (3, 5)");
  refused(matrix, x, {}, {}, "y is missing; give a tensor");
  refused(matrix, x, TensorView(y.view().data(), DType::f32, {3, 5}, {0, 1}), {},
          "y has strides (0, 1) for shape (3, 5), so that several elements share an address; an output must not "
          "overlap itself");
  refused(matrix, x, y, {.bias = flat}, "bias has shape (4,); it must be (N) = (5,)");
  refused(matrix, x, y, {.bias = Tensor({5}, DType::boolean)}, "bias is bool; it must be f32, bf16 or f16");
  refused(matrix, ConstTensorView(y.view().data(), DType::f32, {3, 4}), y, {},
          "y overlaps x; it needs separate memory");
  refused(matrix, x, y, {.bias = bias, .start = y_memory}, "bias and start are both given; give only one");
  refused(matrix, x, y, {.start = bias}, "start has shape (5,); it must be (M, N) = (3, 5)");
  refused(matrix, x, y, {.start = Tensor({3, 5}, DType::boolean)}, "start is bool; it must be f32, bf16 or f16");
  refused(matrix, x, y, {.start = ConstTensorView(y.view().data(), DType::f32, {3, 5}, {1, 3})},
          "y overlaps start; it needs separate memory");
  refused(matrix, x, y, {.threads = -2}, "threads is -2; it must be positive, or 0 for all");
  refused(wide, x, y, {}, "x is f32, the matrix is stored in f64; f64 does not mix with other types");
  std::byte small[8];
  ProductOptions options{.threads = 1, .workspace = small};
  refused(matrix, x, y, options,
          "workspace has 8 bytes; this call needs " + std::to_string(matrix.workspace_bytes(x, y, options)));
}

}  // namespace
}  // namespace rapt::test
