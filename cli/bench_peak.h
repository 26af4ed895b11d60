// What the machine can do at best: fused multiply-adds on registers alone, and a read of memory too large for a cache.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string_view>
#include <vector>

namespace rapt::cli {

// The seconds from the moment all threads start task(0) … task(threads - 1) to the end of the last.
double seconds_on_threads(int threads, const std::function<void(int index)>& task);

// Rounds of independent multiply-adds, on the widest vectors there are. Returns how many operations they were (two per
// multiply-add and lane).
double fma_rounds(std::int64_t rounds);
std::string_view fma_instructions();  // "avx512", "avx2", "neon", "scalar"

class StreamBuffer {
 public:
  static constexpr std::size_t kBytes = std::size_t{256} << 20;

  StreamBuffer();
  // Reads its share of the buffer. The sum is returned so that no compiler can leave the reading out.
  std::uint64_t read(int index, int threads) const;

 private:
  std::vector<std::uint64_t> words_;
};

}  // namespace rapt::cli
