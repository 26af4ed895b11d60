// The fastest plain read of some bytes: what a product that must read its weights once is held against.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "rapt/tensor.h"

namespace rapt::cli {

// Several ways of reading (wide and half as wide vectors, one stream of addresses or four, with prefetch and without);
// the fastest on this machine, for this many bytes and threads, is found at the start and used from then on.
class FastestRead {
 public:
  FastestRead(std::size_t bytes, int threads);

  std::string_view way() const;  // "avx512, 4 streams"
  // Reads everything so many times. Gives bytes per second, in 1e9.
  double gbps(std::int64_t times) const;

 private:
  double gbps(std::size_t way, std::int64_t times) const;

  Tensor memory_;
  int threads_;
  std::size_t way_ = 0;
};

}  // namespace rapt::cli
