// A file that is written atomically.
#pragma once

#include <string>
#include <vector>

#include "io/file_checks.h"
#include "io/sink.h"

namespace rapt::io {

// Writes a temporary file in the same directory and renames it to the target in commit(): readers see either the old
// file or the new one, even after a crash. Without commit() the new file is removed and the old one stays. A process
// that is killed before the rename leaves its temporary file, .NAME.….tmp, behind.
//
// A new file gets its permissions from the umask; a file that replaces another keeps the permissions of the old one. A
// symbolic link is followed, so that the file it names is replaced and the link stays.
class AtomicFile final : public Sink {
 public:
  AtomicFile(const std::string& path, const FileChecks& checks);
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;
  ~AtomicFile() override;

  void write(Bytes bytes) override;
  void overwrite(std::uint64_t offset, Bytes bytes) override;
  std::uint64_t size() const override { return flushed_ + buffer_.size(); }
  // Waits until the bytes are on the disk, then renames.
  void commit();

 private:
  void follow_links();
  void create();
  void write_out(Bytes bytes);
  void flush();

  FileChecks checks_;
  std::string target_;
  std::string folder_;
  std::string temporary_;  // empty once it is renamed or removed
  int descriptor_ = -1;
  unsigned mode_ = 0666;
  bool replaces_ = false;
  std::uint64_t flushed_ = 0;
  std::vector<std::byte> buffer_;  // buffers small writes
};

}  // namespace rapt::io
