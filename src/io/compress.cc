#include "io/compress.h"

#include <algorithm>
#include <array>
#include <limits>

#if RAPT_HAVE_ZLIB

#define ZLIB_CONST  // so that zlib's input is const
#include <zlib.h>

namespace rapt::io {
namespace {

constexpr std::size_t kStep = std::size_t{1} << 30;  // zlib counts in unsigned int

const Bytef* to_zlib(const std::byte* bytes) { return reinterpret_cast<const Bytef*>(bytes); }
Bytef* to_zlib(std::byte* bytes) { return reinterpret_cast<Bytef*>(bytes); }

}  // namespace

std::uint32_t crc32_of(std::uint32_t before, Bytes bytes) {
  return static_cast<std::uint32_t>(::crc32_z(before, to_zlib(bytes.data()), bytes.size()));
}

struct Inflater::Stream {
  z_stream state{};
  Bytes input;
  bool ended = false;
};

Inflater::Inflater(Bytes compressed, const FileChecks& checks) : stream_(std::make_unique<Stream>()), checks_(checks) {
  stream_->input = compressed;
  // A negative window size means raw deflate data, without zlib's own header.
  checks.require(::inflateInit2(&stream_->state, -MAX_WBITS) == Z_OK, "zlib cannot be initialized");
}

Inflater::~Inflater() { ::inflateEnd(&stream_->state); }

void Inflater::read(std::span<std::byte> to) {
  z_stream& state = stream_->state;
  while (!to.empty()) {
    checks_.require(!stream_->ended, "its compressed data ends before its array does");
    const std::size_t in = std::min(stream_->input.size(), kStep);
    const std::size_t out = std::min(to.size(), kStep);
    state.next_in = to_zlib(stream_->input.data()), state.avail_in = static_cast<uInt>(in);
    state.next_out = to_zlib(to.data()), state.avail_out = static_cast<uInt>(out);
    const int result = ::inflate(&state, Z_NO_FLUSH);
    checks_.require(result != Z_BUF_ERROR, "its compressed data is truncated");
    checks_.require(result == Z_OK || result == Z_STREAM_END, "its compressed data is corrupt",
                    state.msg != nullptr ? text(": ", state.msg) : "");
    stream_->input = stream_->input.subspan(in - state.avail_in);
    to = to.subspan(out - state.avail_out);
    stream_->ended = result == Z_STREAM_END;
  }
}

void Inflater::finish() {
  std::byte beyond{};
  z_stream& state = stream_->state;
  if (!stream_->ended) {
    const std::size_t in = std::min(stream_->input.size(), kStep);
    state.next_in = to_zlib(stream_->input.data()), state.avail_in = static_cast<uInt>(in);
    state.next_out = to_zlib(&beyond), state.avail_out = 1;
    const int result = ::inflate(&state, Z_NO_FLUSH);
    checks_.require(result == Z_STREAM_END && state.avail_out == 1, "its compressed data continues after its array");
    stream_->input = stream_->input.subspan(in - state.avail_in);
  }
  checks_.require(stream_->input.empty(), "it has ", stream_->input.size(), " bytes after its compressed data");
}

struct Deflater::Stream {
  z_stream state{};
};

Deflater::Deflater(Sink& sink, const FileChecks& checks)
    : stream_(std::make_unique<Stream>()), sink_(sink), checks_(checks) {
  const int result =
      ::deflateInit2(&stream_->state, Z_DEFAULT_COMPRESSION, Z_DEFLATED, -MAX_WBITS, 8, Z_DEFAULT_STRATEGY);
  checks.require(result == Z_OK, "zlib cannot be initialized");
}

Deflater::~Deflater() { ::deflateEnd(&stream_->state); }

void Deflater::push(Bytes bytes, int flush) {
  std::array<std::byte, 1 << 15> block{};
  z_stream& state = stream_->state;
  state.next_in = to_zlib(bytes.data()), state.avail_in = static_cast<uInt>(bytes.size());
  do {
    state.next_out = to_zlib(block.data()), state.avail_out = static_cast<uInt>(block.size());
    checks_.require(::deflate(&state, flush) != Z_STREAM_ERROR, "zlib failed");
    sink_.write(Bytes(block).first(block.size() - state.avail_out));
  } while (state.avail_out == 0);
}

void Deflater::write(Bytes bytes) {
  for (; !bytes.empty(); bytes = bytes.subspan(std::min(bytes.size(), kStep))) {
    push(bytes.first(std::min(bytes.size(), kStep)), Z_NO_FLUSH);
  }
}

void Deflater::finish() { push({}, Z_FINISH); }

}  // namespace rapt::io

#else

namespace rapt::io {

std::uint32_t crc32_of(std::uint32_t before, Bytes bytes) {
  std::uint32_t crc = ~before;
  for (const std::byte byte : bytes) {
    crc ^= static_cast<std::uint32_t>(byte);
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1U) != 0 ? 0xedb88320U : 0U);
  }
  return ~crc;
}

struct Inflater::Stream {};
struct Deflater::Stream {};

Inflater::Inflater(Bytes, const FileChecks& checks) : checks_(checks) {
  checks.fail("is compressed, and this rapt was built without zlib");
}
Inflater::~Inflater() = default;
void Inflater::read(std::span<std::byte>) {}
void Inflater::finish() {}

Deflater::Deflater(Sink& sink, const FileChecks& checks) : sink_(sink), checks_(checks) {
  checks.fail("cannot be compressed: this rapt was built without zlib");
}
Deflater::~Deflater() = default;
void Deflater::write(Bytes) {}
void Deflater::finish() {}

}  // namespace rapt::io

#endif
