#include "bench/harness/sgemm_baseline.h"

#include <algorithm>
#include <cstddef>
#include <stdexcept>

#include <fmt/format.h>

#include "bench/harness/rounds.h"

namespace rapt::bench {

SgemmBaseline::SgemmBaseline() : libraries_(SgemmLibrary::find()) {
  if (libraries_.empty()) return;
  constexpr auto kCount = static_cast<std::size_t>(kSize * kSize);
  a_.resize(kCount), b_.resize(kCount), c_.resize(kCount);
  for (std::size_t n = 0; n < kCount; ++n) {
    a_[n] = static_cast<float>(n % 7) - 3.0F;
    b_[n] = static_cast<float>(n % 5) - 2.0F;
  }
}

const SgemmLibrary* SgemmBaseline::fastest(int threads) {
  const SgemmLibrary* best = nullptr;
  double best_rate = 0.0;
  for (const SgemmLibrary& library : libraries_) {
    const double rate = std::max(gflops(library, threads), gflops(library, threads));
    require_right(library);
    if (rate > best_rate) best = &library, best_rate = rate;
  }
  return best;
}

double SgemmBaseline::gflops(const SgemmLibrary& library, int threads) {
  library.set_threads(threads);
  const double taken = seconds(
      [&] { library.multiply({.m = kSize, .n = kSize, .k = kSize, .a = a_.data(), .b = b_.data(), .c = c_.data()}); });
  settle(threads);
  return 2.0 * static_cast<double>(kSize * kSize * kSize) / taken / 1e9;
}

// Checks two elements of C. A and B hold small integers, whose sums are exact in f32 in any order.
void SgemmBaseline::require_right(const SgemmLibrary& library) const {
  for (const std::int64_t row : {std::int64_t{0}, kSize - 1}) {
    const std::int64_t column = kSize - 2;
    double expected = 0.0;
    for (std::int64_t k = 0; k < kSize; ++k) {
      expected += static_cast<double>(a_[static_cast<std::size_t>(row * kSize + k)]) *
                  static_cast<double>(b_[static_cast<std::size_t>(k * kSize + column)]);
    }
    if (static_cast<double>(c_[static_cast<std::size_t>(row * kSize + column)]) != expected) {
      throw std::runtime_error(fmt::format("bench: the matrix product of {} is wrong", library.name()));
    }
  }
}

}  // namespace rapt::bench
