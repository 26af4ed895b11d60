// Files that tests write and read.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include <gtest/gtest.h>

#include "rapt/tensor.h"
#include "support/allocations.h"

namespace rapt::test {

// A temporary folder, which is removed with its contents.
class TemporaryFolder {
 public:
  TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  ~TemporaryFolder();

  const std::string& path() const { return path_; }
  std::string operator/(const std::string& name) const { return path_ + "/" + name; }
  int file_count() const;

 private:
  std::string path_;
};

void write_raw(const std::string& path, std::string_view bytes);
std::string read_raw(const std::string& path);
inline std::span<const std::byte> bytes_of(std::string_view text) { return std::as_bytes(std::span(text)); }
inline std::string string_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}
inline std::string test_file(const std::string& name) { return RAPT_TEST_DATA "/files/" + name; }

// A number in little-endian bytes, as in files.
template <class T>
std::string little(T value) {
  return {reinterpret_cast<const char*>(&value), sizeof value};
}

// The value that tests/data/make_files.py writes at row-major index i.
double made_value(std::int64_t i);
double made_integer(std::int64_t i, bool has_sign);
void expect_made(const ConstTensorView& view, const Dims& shape, DType dtype);

// Same type, shape and bits.
void expect_same(const ConstTensorView& a, const ConstTensorView& b);

// The message of the rapt::Error; "" if nothing is thrown, and a test failure for any other exception.
template <class Attempt>
std::string refusal_of(const Attempt& attempt) {
  try {
    attempt();
  } catch (const Error& error) {
    return error.what();
  } catch (const std::exception& other) {
    ADD_FAILURE() << "not a rapt::Error: " << other.what();
  }
  return "";
}

// Like refusal_of; the attempt must also allocate less than 1 MiB in total.
template <class Attempt>
std::string cheap_refusal_of(const Attempt& attempt) {
  const std::int64_t before = allocated_bytes();
  std::string refusal = refusal_of(attempt);
  EXPECT_LT(allocated_bytes() - before, 1 << 20);
  return refusal;
}

}  // namespace rapt::test
