// The fastest streaming read of some bytes: the baseline for work that reads its weights, or its keys and values, once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "rapt/tensor.h"

namespace rapt::bench {

// A streaming read goes through memory once, from its first byte to its last. It can be done in several ways (vectors
// of several widths, with and without prefetch); the fastest on this machine, for this many bytes and threads, is found
// in the constructor and then used. Reading four or eight streams at once can be even faster, because more memory banks
// are busy; its rate is measured separately (gbps_of_all).
class FastestRead {
 public:
  using Bytes = std::span<const std::byte>;

  FastestRead(std::size_t bytes, int threads);               // allocates the memory
  FastestRead(const std::vector<Bytes>& data, int threads);  // the caller keeps it alive

  std::string_view way() const;  // "avx512, prefetch"
  // Reads everything `times` times. Returns the rate in 1e9 bytes per second.
  double gbps(std::int64_t times) const;
  double gbps_of_all(std::int64_t times) const;  // in the fastest way, including several streams

 private:
  void find_way();
  double gbps(std::size_t way, std::int64_t times) const;

  Tensor memory_;
  std::vector<std::vector<Bytes>> shares_;  // the pieces that each thread reads
  std::size_t bytes_ = 0;
  std::size_t way_ = 0, way_of_all_ = 0;
};

}  // namespace rapt::bench
