// Where bytes are written to: a file or memory.
#pragma once

#include <cstdint>
#include <cstring>
#include <utility>
#include <vector>

#include "io/bytes.h"

namespace rapt::io {

class Sink {
 public:
  Sink() = default;
  Sink(const Sink&) = delete;
  Sink& operator=(const Sink&) = delete;
  virtual ~Sink() = default;

  virtual void write(Bytes bytes) = 0;
  // Replaces bytes that were written before.
  virtual void overwrite(std::uint64_t offset, Bytes bytes) = 0;
  virtual std::uint64_t size() const = 0;
};

class MemorySink final : public Sink {
 public:
  void write(Bytes bytes) override { bytes_.insert(bytes_.end(), bytes.begin(), bytes.end()); }
  void overwrite(std::uint64_t offset, Bytes bytes) override {
    std::memcpy(bytes_.data() + offset, bytes.data(), bytes.size());
  }
  std::uint64_t size() const override { return bytes_.size(); }
  std::vector<std::byte> take() { return std::move(bytes_); }

 private:
  std::vector<std::byte> bytes_;
};

}  // namespace rapt::io
