// Runs the fuzzers' checks on every file of fuzz/corpus, in every build.
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "fuzz/check.h"
#include "support/files.h"

namespace rapt::test {
namespace {

void check_all(const char* format, void (*check)(std::span<const std::byte>)) {
  int files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(std::string(RAPT_FUZZ_CORPUS "/") + format)) {
    SCOPED_TRACE(entry.path());
    const std::string file = read_raw(entry.path().string());
    const std::vector<std::byte> exact(bytes_of(file).begin(), bytes_of(file).end());
    EXPECT_NO_THROW(check(exact));
    ++files;
  }
  EXPECT_GT(files, 3);
}

TEST(FuzzCorpus, OfSafetensorsHolds) { check_all("safetensors", fuzz::check_safetensors); }
TEST(FuzzCorpus, OfNpyHolds) { check_all("npy", fuzz::check_npy); }
TEST(FuzzCorpus, OfTokenizerHolds) { check_all("tokenizer", fuzz::check_tokenizer); }
TEST(FuzzCorpus, OfNpzHolds) { check_all("npz", fuzz::check_npz); }

}  // namespace
}  // namespace rapt::test
