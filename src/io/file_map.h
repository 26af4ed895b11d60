// A memory-mapped file.
#pragma once

#include <string>

#include "io/bytes.h"
#include "io/file_checks.h"

namespace rapt::io {

// Maps a regular file for reading. Uses only address space until bytes are accessed.
class FileMap {
 public:
  FileMap() = default;
  FileMap(const std::string& path, const FileChecks& checks);
  FileMap(FileMap&& other) noexcept;
  FileMap& operator=(FileMap&& other) noexcept;
  ~FileMap();

  Bytes bytes() const { return {data_, size_}; }

 private:
  const std::byte* data_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace rapt::io
