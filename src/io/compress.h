// Deflate and checksums for the members of zip archives, by zlib. A build without zlib (RAPT_ZLIB=OFF) has only the
// checksum and rejects deflated members.
#pragma once

#include <cstdint>
#include <memory>

#include "io/bytes.h"
#include "io/file_checks.h"
#include "io/sink.h"

namespace rapt::io {

// Continues the CRC-32 `before` with more bytes; the CRC-32 of no bytes is 0.
std::uint32_t crc32_of(std::uint32_t before, Bytes bytes);

// The maximum compression ratio of deflate.
inline constexpr std::uint64_t kMaxDeflateRatio = 1032;

// Inflates raw deflate data, as much as requested.
class Inflater {
 public:
  Inflater(Bytes compressed, const FileChecks& checks);
  Inflater(const Inflater&) = delete;
  Inflater& operator=(const Inflater&) = delete;
  ~Inflater();

  // Fills `to`; throws if the data is corrupt or too short.
  void read(std::span<std::byte> to);
  // Throws unless both input and output were consumed to the last byte.
  void finish();

 private:
  struct Stream;
  std::unique_ptr<Stream> stream_;
  FileChecks checks_;
};

// Deflates into a sink.
class Deflater {
 public:
  Deflater(Sink& sink, const FileChecks& checks);
  Deflater(const Deflater&) = delete;
  Deflater& operator=(const Deflater&) = delete;
  ~Deflater();

  void write(Bytes bytes);
  void finish();

 private:
  void push(Bytes bytes, int flush);

  struct Stream;
  std::unique_ptr<Stream> stream_;
  Sink& sink_;
  FileChecks checks_;
};

}  // namespace rapt::io
