// .npy files: those that NumPy wrote, and our own.
#include "rapt/npy.h"

#include <functional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "core/elements.h"
#include "support/files.h"

namespace rapt::test {
namespace {

constexpr DType kTypes[] = {DType::f16, DType::f32, DType::f64, DType::bf16, DType::boolean};

TEST(Npy, ReadsEveryTypeInBothMemoryOrders) {
  for (const DType dtype : kTypes) {
    SCOPED_TRACE(name_of(dtype));
    const std::string name(name_of(dtype));
    expect_made(read_npy(test_file(name + ".npy")).view(), {2, 3, 4}, dtype);
    const NpyArray fortran = read_npy(test_file(name + "_fortran.npy"));
    expect_made(fortran.view(), {2, 3, 4}, dtype);
    EXPECT_EQ(fortran.view().strides(), (Dims{1, 2, 6}));  // not copied
    expect_made(read_npy(test_file(name + "_fortran.npy")).tensor(), {2, 3, 4}, dtype);
    expect_made(fortran.tensor(), {2, 3, 4}, dtype);
  }
}

TEST(Npy, ReadsBothByteOrders) {
  for (const DType dtype : {DType::f16, DType::f32, DType::f64, DType::bf16}) {
    SCOPED_TRACE(name_of(dtype));
    const std::string name(name_of(dtype));
    expect_made(read_npy(test_file(name + "_big.npy")).view(), {2, 3, 4}, dtype);
    expect_made(read_npy(test_file(name + "_big_fortran.npy")).view(), {2, 3, 4}, dtype);
    EXPECT_TRUE(npy_info(test_file(name + "_big.npy")).big_endian);
  }
}

TEST(Npy, ReadsEveryVersion) {
  for (const char* name : {"version1.npy", "version2.npy", "version3.npy"}) {
    expect_made(read_npy(test_file(name)).view(), {5, 2}, DType::f32);
  }
}

TEST(Npy, ReadsScalarsEmptyArraysAndEightDimensions) {
  expect_made(read_npy(test_file("scalar.npy")).view(), Dims{}, DType::f64);
  expect_made(read_npy(test_file("empty.npy")).view(), {2, 0, 3}, DType::f32);
  expect_made(read_npy(test_file("rank8.npy")).view(), {1, 2, 1, 2, 1, 2, 1, 2}, DType::f32);
}

TEST(Npy, TellsWhatAFileHoldsWithoutReadingIt) {
  const NpyInfo info = npy_info(test_file("bf16_fortran.npy"));
  EXPECT_EQ(info.type, "bfloat16");
  EXPECT_EQ(info.dtype, DType::bf16);
  EXPECT_EQ(info.shape, (std::vector<std::int64_t>{2, 3, 4}));
  EXPECT_TRUE(info.fortran_order);
  EXPECT_FALSE(info.big_endian);
  EXPECT_EQ(npy_info(test_file("int64.npy")).type, "int64");
  EXPECT_EQ(npy_info(test_file("int64.npy")).dtype, std::nullopt);
  EXPECT_EQ(npy_info(test_file("text.npy")).type, "<U2");
}

TEST(Npy, ConvertsIntegersOnRequest) {
  for (const char* type : {"int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"}) {
    for (const char* form : {"", "_big_fortran"}) {
      const std::string name = std::string(type) + form + ".npy";
      SCOPED_TRACE(name);
      for (const DType dtype : {DType::f32, DType::f64, DType::boolean}) {
        const NpyArray array = read_npy(test_file(name), {.integers_as = dtype});
        ASSERT_EQ(array.dtype(), dtype);
        const Tensor tensor = array.tensor();
        ASSERT_EQ(tensor.shape(), (Dims{3, 5}));
        for (std::int64_t i = 0; i < 15; ++i) {
          const double wanted = made_integer(i, type[0] == 'i');
          EXPECT_EQ(load(tensor.view().data(), dtype, i), dtype == DType::boolean ? (wanted != 0 ? 1.0 : 0.0) : wanted);
        }
      }
    }
  }
  expect_made(read_npy(test_file("f32.npy"), {.integers_as = DType::boolean}).view(), {2, 3, 4}, DType::f32);
}

TEST(Npy, RoundsLargeIntegersOnce) {
  // 2^53 + 2^29 + 1 is just above the midpoint of two f32 values; converted to a double first, it would be exactly at
  // the midpoint.
  const std::int64_t large = (std::int64_t{1} << 53) + (std::int64_t{1} << 29) + 1;
  std::string file = read_raw(test_file("int64.npy"));
  file.replace(128, 8, little(large));
  const NpyArray array = read_npy(bytes_of(file), "large", {.integers_as = DType::f32});
  EXPECT_EQ(array.view().at<float>(0, 0), 9007200328482816.0F);
}

TEST(Npy, RefusesTypesItDoesNotHaveByName) {
  const auto refusal = [](const char* name) { return refusal_of([&] { (void)read_npy(test_file(name)); }); };
  const auto begins = [](const char* name) { return "npy: " + test_file(name) + ": "; };
  EXPECT_EQ(refusal("int64.npy"), begins("int64.npy") +
                                      "holds int64, which rapt does not support; integers can be read as bool, f32 or "
                                      "f64 (NpyOptions::integers_as)");
  EXPECT_EQ(refusal("complex.npy"), begins("complex.npy") + "holds complex64, which rapt does not support");
  EXPECT_EQ(refusal("text.npy"), begins("text.npy") + "holds <U2, which rapt does not support");
  EXPECT_EQ(refusal("objects.npy"), begins("objects.npy") + "holds |O, which rapt does not support");
  EXPECT_EQ(refusal("records.npy"),
            begins("records.npy") + "holds records with fields (a structured type), which rapt does not support");
  EXPECT_EQ(refusal("rank9.npy"), begins("rank9.npy") + "byte 85, in the header: the array has more than 8 dimensions");
  EXPECT_EQ(refusal_of([] { (void)read_npy(test_file("int64.npy"), {.integers_as = DType::bf16}); }),
            begins("int64.npy") + "integers cannot be read as bf16; bool, f32 and f64 can be used");
}

TEST(Npy, WritesWhatNumpyWouldWrite) {
  for (const char* name : {"f16.npy", "f32.npy", "f64.npy", "bf16.npy", "bool.npy", "scalar.npy", "empty.npy",
                           "rank8.npy", "version1.npy"}) {
    SCOPED_TRACE(name);
    EXPECT_EQ(string_of(npy_bytes(read_npy(test_file(name)).view())), read_raw(test_file(name)));
  }
}

TEST(Npy, WritesAnyStrides) {
  const TemporaryFolder folder;
  for (const DType dtype : kTypes) {
    const NpyArray array = read_npy(test_file(std::string(name_of(dtype)) + ".npy"));
    const std::vector<ConstTensorView> views = {array.view(), array.view().transpose(0, 2), array.view().slice(1, 1, 3),
                                                array.view().select(2, 1),
                                                array.view().slice(0, 0, 1).expand({5, 3, 4})};
    for (const ConstTensorView& view : views) {
      write_npy(folder / "x.npy", view);
      expect_same(read_npy(folder / "x.npy").view(), view);
    }
  }
}

TEST(Npy, WritesMoreThanOneBlock) {
  const TemporaryFolder folder;
  Tensor large({300, 500}, DType::f64);
  for (std::int64_t i = 0; i < large.count(); ++i) large.values<double>()[static_cast<std::size_t>(i)] = made_value(i);
  write_npy(folder / "x.npy", large.view().transpose(0, 1));
  expect_same(read_npy(folder / "x.npy").view(), large.view().transpose(0, 1));
}

TEST(Npy, TakesAnyByteButZeroForTrue) {
  std::string file = read_raw(test_file("bool.npy"));
  file[file.size() - 1] = '\x7f';
  const NpyArray array = read_npy(bytes_of(file), "odd");
  EXPECT_EQ(static_cast<const unsigned char*>(array.view().data())[23], 1);
}

TEST(Npy, RefusesToWriteWhatIsNoTensor) {
  EXPECT_EQ(refusal_of([] { (void)npy_bytes({}); }), "npy: (in memory): the tensor: is undefined; give a tensor");
  EXPECT_EQ(refusal_of([] {
              (void)npy_bytes({nullptr, DType::f32, {2}});
            }),
            "npy: (in memory): the tensor: has no memory");
}

}  // namespace
}  // namespace rapt::test
