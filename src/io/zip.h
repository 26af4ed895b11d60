// Zip archives, as far as .npz files use them: members stored or deflated, sizes beyond 4 GB (zip64), one disk, no
// encryption. An archive is
//   for each member   a local header (30 bytes, name, extra), then its bytes
//   the directory     for each member 46 bytes, name, extra, comment: the authoritative list for readers
//   the end           22 bytes and a comment; before it, where numbers are large, zip64's own end and its locator
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "io/bytes.h"
#include "io/file_checks.h"
#include "io/sink.h"

namespace rapt::io {

inline constexpr std::uint16_t kStored = 0;
inline constexpr std::uint16_t kDeflated = 8;

struct ZipMember {
  std::string name;
  std::uint16_t method = kStored;
  std::uint16_t flags = 0;
  std::uint32_t crc = 0;
  std::uint64_t size = 0;         // in the archive
  std::uint64_t full_size = 0;    // once inflated
  std::uint64_t local_begin = 0;  // of the local header
  std::uint64_t limit = 0;        // where the next member or the directory begins
};

// The directory, checked: every member lies within the file, none overlaps another, no name appears twice, and no
// member claims to be larger than deflate could make it.
std::vector<ZipMember> read_zip_directory(Bytes file, const FileChecks& checks);

// The bytes of a member in the archive, after a check of its local header.
Bytes zip_member_bytes(Bytes file, const ZipMember& member, const FileChecks& checks);

// Writes an archive, member by member. Its dates are all the same, so that equal tensors give equal files.
class ZipWriter {
 public:
  // With `zip64`, every number is written in its long form, even if it is not needed.
  explicit ZipWriter(Sink& sink, bool zip64 = false) : sink_(sink), always_long_(zip64) {}

  // Call begin, write the member's bytes to the sink, then call end with the checksum of the member's data.
  void begin(const std::string& name, std::uint16_t method, std::uint64_t full_size);
  void end(std::uint32_t crc);
  void finish();

 private:
  std::string local_header(const ZipMember& member) const;

  Sink& sink_;
  bool always_long_;
  bool long_member_ = false;
  std::vector<ZipMember> members_;
};

}  // namespace rapt::io
