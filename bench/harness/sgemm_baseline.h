// The rate of sgemm on this machine, the baseline for attention and layers.
#pragma once

#include <cstdint>
#include <vector>

#include "bench/harness/sgemm.h"

namespace rapt::bench {

// Times C = A · B in f32 with m = n = k = 2048, for each library that was found.
class SgemmBaseline {
 public:
  SgemmBaseline();

  // The fastest library with that many threads, after a warm-up of each library; null if there is none.
  const SgemmLibrary* fastest(int threads);
  double gflops(const SgemmLibrary& library, int threads);

 private:
  static constexpr std::int64_t kSize = 2048;

  void require_right(const SgemmLibrary& library) const;

  std::vector<SgemmLibrary> libraries_;
  std::vector<float> a_, b_, c_;
};

}  // namespace rapt::bench
