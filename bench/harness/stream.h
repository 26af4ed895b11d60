// The fastest streaming read of some bytes: the baseline for work that reads its weights, or its keys and values, once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "rapt/tensor.h"

namespace rapt::bench {

// A streaming read goes through memory once, from its first byte to its last. There are several ways (wide and half as
// wide vectors, with prefetch and without); the fastest on this machine, for this many bytes and threads, is found at
// the start and used from then on. Reading four or eight streams at once can be faster still, because more memory banks
// are busy. That is measured separately.
class FastestRead {
 public:
  using Bytes = std::span<const std::byte>;

  FastestRead(std::size_t bytes, int threads);               // of memory of its own
  FastestRead(const std::vector<Bytes>& data, int threads);  // of these, which stay the caller's

  std::string_view way() const;  // "avx512, prefetch"
  // Reads everything so many times. Gives bytes per second, in 1e9.
  double gbps(std::int64_t times) const;
  double gbps_of_all(std::int64_t times) const;  // by the fastest of all ways, those in several places included

 private:
  void find_way();
  double gbps(std::size_t way, std::int64_t times) const;

  Tensor memory_;
  std::vector<std::vector<Bytes>> shares_;  // of each thread
  std::size_t bytes_ = 0;
  std::size_t way_ = 0, way_of_all_ = 0;
};

}  // namespace rapt::bench
