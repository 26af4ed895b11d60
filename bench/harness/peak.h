// Peak performance: fused multiply-adds on registers only.
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>

namespace rapt::bench {

// Runs task(0) … task(threads - 1), each in its own thread. Returns the seconds from their common start to the end of
// the last one.
double seconds_on_threads(int threads, const std::function<void(int index)>& task);

// Computes `rounds` rounds of independent multiply-adds on the widest vectors available. Returns the number of
// operations (two per multiply-add and lane).
double fma_rounds(std::int64_t rounds);
std::string_view fma_instructions();  // "avx512", "avx2", "neon", "scalar"

}  // namespace rapt::bench
