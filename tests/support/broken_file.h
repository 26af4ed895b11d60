// A broken file and its expected error message.
#pragma once

#include <functional>
#include <ostream>
#include <string>

#include <gtest/gtest.h>

#include "support/files.h"

namespace rapt::test {

struct BrokenFile {
  const char* name;
  std::function<std::string()> bytes;
  const char* message;  // without the format and the file name in front
};

inline void PrintTo(const BrokenFile& broken, std::ostream* stream) { *stream << broken.name; }

// Reads the broken file from disk, and from memory of exactly its size, so that a sanitizer detects reads past its end.
template <class Read>  // read(path), and read(bytes, name)
void expect_refusal(const std::string& format, const BrokenFile& broken, const Read& read) {
  const TemporaryFolder folder;
  const std::string bytes = broken.bytes();
  const std::string path = folder / "broken";
  write_raw(path, bytes);
  EXPECT_EQ(cheap_refusal_of([&] { read(path); }), format + ": " + path + ": " + broken.message);
  const std::vector<std::byte> exact(bytes_of(bytes).begin(), bytes_of(bytes).end());
  EXPECT_EQ(cheap_refusal_of([&] { read(std::span(exact), "memory"); }), format + ": memory: " + broken.message);
}

}  // namespace rapt::test
