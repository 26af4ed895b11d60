// Atomic writes: whatever interrupts a writer, a reader sees the old file or the new one.
#include <csignal>
#include <fcntl.h>
#include <filesystem>
#include <random>
#include <string>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

#include <gtest/gtest.h>

#include "rapt/npy.h"
#include "rapt/safetensors.h"
#include "support/files.h"
#include "support/forked_child.h"

namespace rapt::test {
namespace {

// Every element is `value`.
Tensor filled(float value) {
  Tensor tensor({200, 300});
  for (float& element : tensor.values<float>()) element = value;
  return tensor;
}

mode_t mode_of(const std::string& path) {
  struct stat status {};
  EXPECT_EQ(::stat(path.c_str(), &status), 0);
  return status.st_mode & 0777U;
}

// Writes files until the process is killed, each with a different value in all its elements.
[[noreturn]] void write_for_ever(const TemporaryFolder& folder) {
  for (float value = 1.0F;; value += 1.0F) {
    const Tensor tensor = filled(value);
    write_safetensors(folder / "x.safetensors", {{"a", tensor}, {"b", tensor}});
    write_npy(folder / "x.npy", tensor);
    write_npz(folder / "x.npz", {{"a", tensor}}, {.compress = true});
  }
}

void expect_all_equal(const ConstTensorView& view) {
  const Tensor tensor = Tensor::copy_of(view);
  ASSERT_EQ(tensor.shape(), (Dims{200, 300}));
  for (const float value : tensor.values<float>()) ASSERT_EQ(value, tensor.values<float>()[0]);
}

TEST(WholeFiles, AKilledWriterLeavesTheOldFileOrTheNewOne) {
  const TemporaryFolder folder;
  const Tensor zero = filled(0.0F);
  write_safetensors(folder / "x.safetensors", {{"a", zero}, {"b", zero}});
  write_npy(folder / "x.npy", zero);
  write_npz(folder / "x.npz", {{"a", zero}});
  std::mt19937 random(1);
  for (int kill = 0; kill < 50; ++kill) {
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) write_for_ever(folder);
    std::this_thread::sleep_for(std::chrono::microseconds(random() % 40000));
    ASSERT_EQ(::kill(child, SIGKILL), 0);
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFSIGNALED(status)) << "the writer ended by itself";
    const SafetensorsFile tensors(folder / "x.safetensors");
    expect_all_equal(tensors.at("a"));
    expect_same(tensors.at("a"), tensors.at("b"));
    expect_all_equal(read_npy(folder / "x.npy").view());
    expect_all_equal(NpzFile(folder / "x.npz").at("a").view());
  }
}

TEST(WholeFiles, AnOpenFileOutlivesItsReplacement) {
  const TemporaryFolder folder;
  write_safetensors(folder / "x", {{"a", filled(1.0F)}});
  const SafetensorsFile old(folder / "x");
  write_safetensors(folder / "x", {{"a", filled(2.0F)}});
  EXPECT_EQ(old.at("a").at<float>(199, 299), 1.0F);
  EXPECT_EQ(SafetensorsFile(folder / "x").at("a").at<float>(199, 299), 2.0F);
}

TEST(WholeFiles, AWriteThatFailsHalfwayLeavesTheOldFileAndNoOther) {
  const TemporaryFolder folder;
  write_npy(folder / "x.npy", filled(1.0F));
  EXPECT_TRUE(test::holds_in_forked_child([&] {  // this process may write files of up to 100 kB
    ::signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{100'000, 100'000};
    ::setrlimit(RLIMIT_FSIZE, &limit);
    const std::string expected = ": cannot be written past byte 100000: File too large";
    const std::string path = folder / "x.npy";
    const Tensor two = filled(2.0F);
    const std::string npy = refusal_of([&] { write_npy(path, two); });
    const std::string npz = refusal_of([&] { write_npz(path, {{"a", two}}); });
    const std::string safetensors = refusal_of([&] { write_safetensors(path, {{"a", two}}); });
    return npy == "npy: " + path + expected && npz == "npz: " + path + expected &&
           safetensors == "safetensors: " + path + expected;
  }));
  EXPECT_EQ(folder.file_count(), 1);
  expect_same(read_npy(folder / "x.npy").view(), filled(1.0F));
}

TEST(WholeFiles, WriteErrorsSayWhere) {
  const TemporaryFolder folder;
  const Tensor tensor({2});
  const auto refusal = [&](const std::string& path) { return refusal_of([&] { write_npy(path, tensor); }); };
  const auto begins = [](const std::string& path) { return "npy: " + path + ": "; };
  const std::string missing = folder / "no/folder.npy", file = folder / "file", below = folder / "file/x.npy";
  write_raw(file, "");
  EXPECT_EQ(refusal(missing),
            begins(missing) + "cannot be written in " + (folder / "no") + ": No such file or directory");
  EXPECT_EQ(refusal(below), begins(below) + "cannot be written in " + file + ": Not a directory");
  EXPECT_EQ(refusal(folder.path()), begins(folder.path()) + "is a directory, not a file");
  EXPECT_EQ(refusal(folder / "new/"), begins(folder / "new/") + "is a directory, not a file");
  EXPECT_EQ(refusal(""), "npy: : the path is empty");
  EXPECT_EQ(refusal("/dev/null"), "npy: /dev/null: is not a regular file and cannot be replaced");
  EXPECT_TRUE(std::filesystem::is_character_file("/dev/null"));
  EXPECT_EQ(refusal(std::string("a\0b", 3)), "npy: \"a\\x00b\": the path has a zero byte in it");
  EXPECT_EQ(folder.file_count(), 1);
}

TEST(WholeFiles, ReadErrorsSayWhere) {
  const TemporaryFolder folder;
  const auto refusal = [&](const std::string& path) { return refusal_of([&] { (void)read_npy(path); }); };
  EXPECT_EQ(refusal(folder / "x"), "npy: " + (folder / "x") + ": cannot be opened: No such file or directory");
  EXPECT_EQ(refusal(folder.path()), "npy: " + folder.path() + ": is a directory, not a file");
  EXPECT_EQ(refusal("/dev/null"), "npy: /dev/null: is not a regular file; read it into memory and pass its bytes");
  ASSERT_EQ(::mkfifo((folder / "pipe").c_str(), 0600), 0);
  EXPECT_EQ(refusal(folder / "pipe"),
            "npy: " + (folder / "pipe") + ": is not a regular file; read it into memory and pass its bytes");
}

TEST(WholeFiles, AReadOnlyFileOrFolderIsLeftAlone) {
  if (::geteuid() == 0) GTEST_SKIP() << "root may write everywhere";
  const TemporaryFolder folder;
  write_raw(folder / "x.npy", "old");
  ASSERT_EQ(::chmod((folder / "x.npy").c_str(), 0444), 0);
  EXPECT_EQ(refusal_of([&] { write_npy(folder / "x.npy", Tensor({2})); }),
            "npy: " + (folder / "x.npy") + ": cannot be written: Permission denied");
  ASSERT_EQ(::chmod(folder.path().c_str(), 0555), 0);
  EXPECT_EQ(refusal_of([&] { write_npy(folder / "y.npy", Tensor({2})); }),
            "npy: " + (folder / "y.npy") + ": cannot be written in " + folder.path() + ": Permission denied");
  ASSERT_EQ(::chmod(folder.path().c_str(), 0755), 0);
  EXPECT_EQ(read_raw(folder / "x.npy"), "old");
}

TEST(WholeFiles, PermissionsComeFromTheUmaskOrTheFileBefore) {
  const TemporaryFolder folder;
  const mode_t before = ::umask(027);
  write_npy(folder / "x.npy", Tensor({2}));
  ::umask(before);
  EXPECT_EQ(mode_of(folder / "x.npy"), 0640U);
  ASSERT_EQ(::chmod((folder / "x.npy").c_str(), 0604), 0);
  write_npy(folder / "x.npy", Tensor({3}));
  EXPECT_EQ(mode_of(folder / "x.npy"), 0604U);
}

TEST(WholeFiles, ALinkStaysAndTheFileItNamesIsReplaced) {
  const TemporaryFolder folder;
  std::filesystem::create_directory(folder / "real");
  std::filesystem::create_symlink("real/x.npy", folder / "link");
  for (const std::int64_t size : {2, 3}) {  // the first time there is no file yet
    write_npy(folder / "link", Tensor({size}));
    EXPECT_TRUE(std::filesystem::is_symlink(folder / "link"));
    EXPECT_EQ(read_npy(folder / "real/x.npy").view().shape(), Dims{size});
  }
}

TEST(WholeFiles, ANameMayBeAsLongAsNamesCanBe) {
  const TemporaryFolder folder;
  write_npy(folder / std::string(255, 'x'), Tensor({2}));
  EXPECT_EQ(folder.file_count(), 1);
}

}  // namespace
}  // namespace rapt::test
