// Safetensors files: those that the safetensors package wrote, and our own.
#include "rapt/safetensors.h"

#include <cstring>
#include <filesystem>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "io/file_types.h"
#include "rapt/npy.h"
#include "support/files.h"
#include "support/safetensors.h"

namespace rapt::test {
namespace {

// A file with this header; the tensors' bytes are 0, 1, 2, …
std::string file_with(const std::string& header, std::size_t data) {
  std::string file = little(std::uint64_t{header.size()}) + header;
  for (std::size_t i = 0; i < data; ++i) file += static_cast<char>(i);
  return file;
}

TEST(FileTypes, EveryTypeHasARow) {
  for (const DType dtype : {DType::f32, DType::f64, DType::bf16, DType::f16, DType::boolean}) {
    EXPECT_EQ(io::file_type(dtype).dtype, dtype);
    EXPECT_EQ(io::dtype_of_safetensors(io::file_type(dtype).safetensors), dtype);
    EXPECT_EQ(io::dtype_of_npy(io::file_type(dtype).npy, size_of(dtype)), dtype);
  }
}

TEST(SafetensorsFile, ReadsEveryTypeOfThePackage) {
  const SafetensorsFile file(test_file("types.safetensors"));
  for (const DType dtype : {DType::f64, DType::f32, DType::bf16, DType::f16}) {
    expect_made(file.at(name_of(dtype)), {2, 3}, dtype);
  }
  expect_made(file.at("bool"), {5}, DType::boolean);
  expect_made(file.at("scalar"), Dims{}, DType::f32);
  expect_made(file.at("empty"), {0, 4}, DType::f32);
  expect_made(file.at("odd \"name\"\n\\ größe 😀"), {2}, DType::f32);
  EXPECT_EQ(file.metadata(), (std::map<std::string, std::string>{{"format", "np"}, {"note", "a \"quoted\" größe"}}));
  EXPECT_TRUE(SafetensorsFile(test_file("empty.safetensors")).names().empty());
}

TEST(SafetensorsFile, ReadsWhatPyTorchWrote) {
  int files = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(RAPT_TEST_DATA)) {
    if (entry.path().extension() != ".safetensors" || entry.path().stem() == "types") continue;
    SCOPED_TRACE(entry.path());
    const SafetensorsFile file(entry.path().string());
    const Safetensors other = read_safetensors(entry.path().string());
    EXPECT_EQ(file.names().size(), other.tensors.size());
    EXPECT_EQ(file.metadata(), other.metadata);
    for (const auto& [name, tensor] : other.tensors) expect_same(file.at(name), tensor);
    ++files;
  }
  EXPECT_GT(files, 5);
}

TEST(SafetensorsFile, ListsWhatItCannotViewAndRefusesItWhenAskedFor) {
  const SafetensorsFile file(test_file("types.safetensors"));
  const std::string begin = "safetensors: " + test_file("types.safetensors") + ": ";
  const SafetensorsEntry* entry = file.entry("int64");
  ASSERT_NE(entry, nullptr);
  EXPECT_EQ(entry->type, "I64");
  EXPECT_EQ(entry->dtype, std::nullopt);
  EXPECT_EQ(entry->shape, (std::vector<std::int64_t>{3, 1}));
  EXPECT_EQ(entry->end - entry->begin, 24U);
  EXPECT_EQ(refusal_of([&] { (void)file.at("int64"); }),
            begin + "tensor \"int64\" holds \"I64\", which rapt does not support");
  EXPECT_EQ(refusal_of([&] { (void)file.find("int64"); }),
            begin + "tensor \"int64\" holds \"I64\", which rapt does not support");
  EXPECT_EQ(file.entry("rank9")->shape.size(), 9U);
  EXPECT_EQ(refusal_of([&] { (void)file.at("rank9"); }), begin + "tensor \"rank9\" has rank 9; a view has at most 8");
}

TEST(SafetensorsFile, SaysWhichTensorsThereAre) {
  const std::string bytes = file_with(R"({"a":{"dtype":"BOOL","shape":[0],"data_offsets":[0,0]}})", 0);
  const SafetensorsFile file(bytes_of(bytes), "small");
  EXPECT_EQ(file.entry("w"), nullptr);
  EXPECT_FALSE(file.find("w").has_value());
  EXPECT_EQ(refusal_of([&] { (void)file.at("w"); }), "safetensors: small: has no tensor \"w\"; it has \"a\"");
}

TEST(SafetensorsFile, ListsATypeOfALaterDay) {
  const std::string bytes = file_with(R"({"a":{"dtype":"F3","shape":[7],"new":[{}],"data_offsets":[0,2]}})", 2);
  EXPECT_EQ(SafetensorsFile(bytes_of(bytes), "later").entry("a")->type, "F3");
}

TEST(SafetensorsFile, ViewsWithoutACopyWhereTheFileIsAligned) {
  const TemporaryFolder folder;
  const Tensor wide({4}, DType::f64), odd({3}, DType::boolean), half({3}, DType::bf16);
  write_safetensors(folder / "x.safetensors", {{"odd", odd}, {"half", half}, {"wide", wide}});
  const SafetensorsFile file(folder / "x.safetensors");
  EXPECT_EQ(file.names(), (std::vector<std::string>{"odd", "half", "wide"}));  // the given order
  const auto place = [&](const char* name) {
    return static_cast<const std::byte*>(file.at(name).data()) - file.entry(name)->begin;
  };
  EXPECT_EQ(place("wide"), place("odd"));  // both point into the same mapping
  EXPECT_EQ(place("wide"), place("half"));
  for (const SafetensorsEntry& entry : file.entries()) EXPECT_EQ(entry.begin % size_of(*entry.dtype), 0U);
}

TEST(SafetensorsFile, CopiesWhatIsNotAlignedOnce) {
  const std::string bytes = file_with(R"({"a":{"dtype":"BOOL","shape":[1],"data_offsets":[0,1]},)"
                                      R"("b":{"dtype":"F32","shape":[2],"data_offsets":[1,9]}} )",
                                      9);
  for (std::size_t shift = 0; shift < 8; ++shift) {
    const std::string moved = std::string(shift, ' ') + bytes;
    SafetensorsFile file(bytes_of(moved).subspan(shift), "odd");
    const ConstTensorView view = file.at("b");
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(view.data()) % 4, 0U);
    EXPECT_EQ(std::memcmp(view.data(), "\1\2\3\4\5\6\7\10", 8), 0);
    EXPECT_EQ(file.at("b").data(), view.data());
    const SafetensorsFile other = std::move(file);
    EXPECT_EQ(other.at("b").data(), view.data());
  }
}

TEST(SafetensorsFile, TakesAnyByteButZeroForTrue) {
  const std::string bytes = file_with(R"({"a":{"dtype":"BOOL","shape":[4],"data_offsets":[0,4]}})", 4);
  const SafetensorsFile file(bytes_of(bytes), "bools");
  EXPECT_EQ(std::memcmp(file.at("a").data(), "\0\1\1\1", 4), 0);
}

TEST(SafetensorsFile, IsReadByManyThreadsAtOnce) {
  const std::string bytes = file_with(R"({"a":{"dtype":"BOOL","shape":[1],"data_offsets":[0,1]},)"
                                      R"("b":{"dtype":"F64","shape":[2],"data_offsets":[1,17]}} )",
                                      17);
  const SafetensorsFile file(bytes_of(bytes), "odd");
  std::vector<const void*> seen(4);
  std::vector<std::thread> threads;
  for (const void*& place : seen) threads.emplace_back([&] { place = file.at("b").data(); });
  for (std::thread& thread : threads) thread.join();
  for (const void* place : seen) EXPECT_EQ(place, seen[0]);
}

TEST(SafetensorsFile, OpensAGigabyteForThePriceOfItsHeader) {
  if (!kCountsAllocations) GTEST_SKIP() << "nothing is counted under this sanitizer";
  const TemporaryFolder folder;
  const std::string path = folder / "large.safetensors";
  write_raw(path, file_with(R"({"w":{"dtype":"F32","shape":[16384,16384],"data_offsets":[0,1073741824]}}   )", 0));
  std::filesystem::resize_file(path, std::filesystem::file_size(path) + (std::size_t{1} << 30));  // a hole of zeros
  const std::int64_t before = allocated_bytes();
  const SafetensorsFile file(path);
  EXPECT_EQ(file.at("w").at<float>(16383, 16383), 0.0F);
  EXPECT_LT(allocated_bytes() - before, 10000);
}

TEST(WriteSafetensors, IsReadBack) {
  const TemporaryFolder folder;
  std::vector<NpyArray> arrays;
  std::vector<NamedTensor> tensors;
  for (const char* name :
       {"bool.npy", "f16_fortran.npy", "f64.npy", "bf16.npy", "scalar.npy", "empty.npy", "f32.npy"}) {
    arrays.push_back(read_npy(test_file(name)));
    tensors.push_back({std::string("größe\n\"\x01") + name, arrays.back().view()});
  }
  const std::map<std::string, std::string> metadata = {{"a", "b"}, {"\\", "\t"}, {"größe", ""}};
  write_safetensors(folder / "x", tensors, metadata);
  const SafetensorsFile file(folder / "x");
  const Safetensors other = read_safetensors(folder / "x");
  EXPECT_EQ(file.metadata(), metadata);
  EXPECT_EQ(other.metadata, metadata);
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    EXPECT_EQ(file.names()[i], tensors[i].name);
    expect_same(file.at(tensors[i].name), tensors[i].value);
    expect_same(other.at(tensors[i].name), tensors[i].value);
  }
  EXPECT_EQ(read_raw(folder / "x"), string_of(safetensors_bytes(tensors, metadata)));
  write_safetensors(folder / "x", {});
  EXPECT_TRUE(SafetensorsFile(folder / "x").names().empty());
}

TEST(WriteSafetensors, RefusesWhatCannotBeWritten) {
  const Tensor x({1});
  const auto refusal = [&](const std::vector<NamedTensor>& tensors, const std::map<std::string, std::string>& words) {
    return refusal_of([&] { (void)safetensors_bytes(tensors, words); });
  };
  EXPECT_EQ(refusal({{"a", x}, {"a", x}}, {}), "safetensors: (in memory): tensor \"a\": is given twice");
  EXPECT_EQ(refusal({{"\xc0", x}}, {}), "safetensors: (in memory): tensor \"\\xc0\": its name is not UTF-8");
  EXPECT_EQ(refusal({{"__metadata__", x}}, {}),
            "safetensors: (in memory): tensor \"__metadata__\": this name is reserved for metadata");
  EXPECT_EQ(refusal({{"a", {}}}, {}), "safetensors: (in memory): tensor \"a\": is undefined; give a tensor");
  EXPECT_EQ(refusal({}, {{"a", "\xff"}}), "safetensors: (in memory): metadata \"a\" is not UTF-8");
}

}  // namespace
}  // namespace rapt::test
