// .npz files: those that NumPy wrote, and our own.
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "io/compress.h"
#include "io/npy_header.h"
#include "io/zip.h"
#include "rapt/npy.h"
#include "support/files.h"

namespace rapt::test {
namespace {

TEST(Npz, ReadsWhatNumpyStoredOrDeflated) {
  for (const char* name : {"stored.npz", "deflated.npz"}) {
    SCOPED_TRACE(name);
    const NpzFile file(test_file(name));
    EXPECT_EQ(file.names(), (std::vector<std::string>{"a", "b", "mask", "größe", "folder/x", "i", "none"}));
    expect_made(file.at("a").view(), {2, 3}, DType::f32);
    expect_made(file.at("b").view(), {4}, DType::f64);
    expect_made(file.at("mask").view(), {3, 3}, DType::boolean);
    expect_made(file.at("größe").view(), {7}, DType::bf16);
    expect_made(file.at("folder/x").view(), {3, 2}, DType::f16);
    expect_made(file.at("none").view(), {0}, DType::f32);
    const NpyArray integers = file.at("i", {.integers_as = DType::f32});
    EXPECT_EQ(integers.view().at<float>(299), made_integer(299, true));
    EXPECT_EQ(file.info("i").type, "int64");
    EXPECT_EQ(file.info("i").shape, std::vector<std::int64_t>{300});
  }
  EXPECT_TRUE(NpzFile(test_file("empty.npz")).names().empty());
}

TEST(Npz, SaysWhichArraysThereAre) {
  const NpzFile file(test_file("stored.npz"));
  EXPECT_TRUE(file.contains("mask"));
  EXPECT_FALSE(file.contains("mask.npy"));
  EXPECT_FALSE(file.find("absent").has_value());
  EXPECT_TRUE(file.find("a").has_value());
  EXPECT_EQ(refusal_of([&] { (void)file.at("absent"); }),
            "npz: " + test_file("stored.npz") +
                ": has no array \"absent\"; it has \"a\", \"b\", \"mask\", \"größe\", \"folder/x\", \"i\", \"none\"");
  EXPECT_EQ(
      refusal_of([&] { (void)file.at("i"); }),
      "npz: " + test_file("stored.npz") +
          ": member \"i.npy\": holds int64, which rapt does not support; integers can be read as bool, f32 or f64 "
          "(NpyOptions::integers_as)");
}

std::vector<NamedTensor> tensors_of(const std::vector<NpyArray>& arrays, const std::vector<std::string>& names) {
  std::vector<NamedTensor> tensors;
  for (std::size_t i = 0; i < arrays.size(); ++i) tensors.push_back({names[i], arrays[i].view()});
  return tensors;
}

TEST(Npz, ReadsWhatItWrote) {
  const TemporaryFolder folder;
  const std::vector<std::string> names = {"bf16", "f16", "größe", "bool", "scalar", "empty", ""};
  std::vector<NpyArray> arrays;
  for (const char* name :
       {"bf16.npy", "f16_fortran.npy", "f64.npy", "bool.npy", "scalar.npy", "empty.npy", "f32.npy"}) {
    arrays.push_back(read_npy(test_file(name)));
  }
  for (const bool compress : {false, true}) {
    write_npz(folder / "x.npz", tensors_of(arrays, names), {.compress = compress});
    const NpzFile file(folder / "x.npz");
    EXPECT_EQ(file.names(), names);
    for (std::size_t i = 0; i < names.size(); ++i) expect_same(file.at(names[i]).view(), arrays[i].view());
    EXPECT_EQ(read_raw(folder / "x.npz"), string_of(npz_bytes(tensors_of(arrays, names), {.compress = compress})));
  }
  write_npz(folder / "x.npz", {});
  EXPECT_TRUE(NpzFile(folder / "x.npz").names().empty());
}

TEST(Npz, DeflatesWhatRepeats) {
  const Tensor zeros({1000, 1000}, DType::f32);
  const std::vector<std::byte> bytes = npz_bytes({{"zeros", zeros}}, {.compress = true});
  EXPECT_LT(bytes.size(), 8000U);  // of 4 MB
  expect_same(NpzFile(bytes, "zeros").at("zeros").view(), zeros);
}

// Archives beyond 4 GB store their sizes and offsets in extra fields (zip64); here that form is used for small numbers.
TEST(Npz, ReadsTheLongFormOfNumbers) {
  const NpyArray array = read_npy(test_file("f64.npy"));
  const std::string member = read_raw(test_file("f64.npy"));
  io::MemorySink sink;
  io::ZipWriter zip(sink, true);
  for (const char* name : {"a.npy", "b.npy", "notes.txt"}) {
    zip.begin(name, io::kStored, member.size());
    sink.write(bytes_of(member));
    zip.end(io::crc32_of(0, bytes_of(member)));
  }
  zip.finish();
  const std::vector<std::byte> bytes = sink.take();
  const NpzFile file(bytes, "long");
  EXPECT_EQ(file.names(), (std::vector<std::string>{"a", "b"}));
  expect_same(file.at("b").view(), array.view());
}

TEST(Npz, ReadsAnArchiveWithAComment) {
  std::string file = read_raw(test_file("stored.npz"));
  file.replace(file.size() - 2, 2, little<std::uint16_t>(5));
  file += "hello";
  expect_made(NpzFile(bytes_of(file), "comment").at("a").view(), {2, 3}, DType::f32);
}

TEST(Npz, RefusesNamesThatCannotBeWritten) {
  const Tensor x({1});
  const auto refusal = [&](const std::vector<NamedTensor>& tensors) {
    return refusal_of([&] { (void)npz_bytes(tensors); });
  };
  EXPECT_EQ(refusal({{"a", x}, {"a", x}}), "npz: (in memory): tensor \"a\": is given twice");
  EXPECT_EQ(refusal({{"\xff", x}}), "npz: (in memory): tensor \"\\xff\": its name is not UTF-8 text");
  EXPECT_EQ(refusal({{"a", {}}}), "npz: (in memory): tensor \"a\": is undefined; give a tensor");
  EXPECT_NE(refusal({{std::string(70000, 'a'), x}}).find("its name is too long for a zip archive"), std::string::npos);
}

}  // namespace
}  // namespace rapt::test
