// Work for warps: a function object that a kernel calls for each item, one warp per item.
//
// Such a function is written for the warp, not for the thread: values that differ between lanes are in PerLane, work of
// single lanes is in for_each_lane, and everything else is the same in all lanes. So the same source runs without a
// GPU, with a loop over 32 lanes in place of 32 threads, and tests run every kernel of this kind that way.
#pragma once

#include <cstdint>
#include <cstring>

#include "cuda/arguments.h"
#include "cuda/contract.h"
#include "cuda/launch.h"

// The namespace of everything that is compiled for warps. Emulated warps have a namespace of their own, because one
// program may contain both.
#if defined(__CUDACC__)
#include "cuda/errors.h"
#define RAPT_KERNELS cuda
#else
#define RAPT_KERNELS cuda::emulated
#endif

namespace rapt::RAPT_KERNELS {

inline constexpr int kLanes = 32;

// The shared memory of a warp: a number for each key of a chunk, or for as many queries.
struct WarpMemory {
  float w[kPlainChunk];
};

#if defined(__CUDACC__)

template <class T>
class PerLane {
 public:
  RAPT_DEVICE T& operator[](int /*lane*/) { return value_; }
  RAPT_DEVICE const T& operator[](int /*lane*/) const { return value_; }

 private:
  T value_{};
};

// Calls work(lane) in each lane. What lanes write to the warp's memory may be read after the call, not during it.
template <class F>
RAPT_DEVICE void for_each_lane(const F& work) {
  work(static_cast<int>(threadIdx.x % kLanes));
  __syncwarp();
}

RAPT_DEVICE float from_lane(const PerLane<float>& values, int lane) {
  return __shfl_sync(0xFFFFFFFFU, values[lane], lane);
}

// Combines all lanes' values: pairs 16 apart, then 8, 4, 2 and 1. `combine` must be commutative.
template <class F>
RAPT_DEVICE float reduce(const PerLane<float>& values, const F& combine) {
  float value = values[0];
  for (int apart = kLanes / 2; apart > 0; apart /= 2) {
    value = combine(value, __shfl_xor_sync(0xFFFFFFFFU, value, apart));
  }
  return value;
}

inline constexpr int kWarpsPerBlock = 4;

template <class Work>
__global__ void __launch_bounds__(kWarpsPerBlock* kLanes, 4)
    run_items(const __grid_constant__ Work work, const std::int64_t items) {
  __shared__ WarpMemory memory[kWarpsPerBlock];
  const int warp = static_cast<int>(threadIdx.x) / kLanes;
  const std::int64_t step = std::int64_t{gridDim.x} * kWarpsPerBlock;
  for (std::int64_t item = std::int64_t{blockIdx.x} * kWarpsPerBlock + warp; item < items; item += step) {
    work(item, memory[warp]);
  }
}

// Enqueues work(item, memory) for items 0 … items − 1.
template <class Work>
void launch_items(const char* name, const Work& work, std::int64_t items, const Launch& launch) {
  static_assert(sizeof(Work) + sizeof(items) <= 4096, "every GPU since Turing takes 4096 bytes of kernel parameters");
  if (items <= 0) return;
  constexpr std::int64_t kMostBlocks = 0x7FFFFFFF;
  const std::int64_t blocks = (items + kWarpsPerBlock - 1) / kWarpsPerBlock;
  run_items<<<static_cast<unsigned>(blocks < kMostBlocks ? blocks : kMostBlocks), kWarpsPerBlock * kLanes, 0,
              launch.stream>>>(work, items);
  require_launched(name, launch.device);
}

#else

template <class T>
class PerLane {
 public:
  T& operator[](int lane) { return values_[lane]; }
  const T& operator[](int lane) const { return values_[lane]; }

 private:
  T values_[kLanes] = {};
};

template <class F>
void for_each_lane(const F& work) {
  for (int lane = 0; lane < kLanes; ++lane) work(lane);
}

inline float from_lane(const PerLane<float>& values, int lane) { return values[lane]; }

template <class F>
float reduce(PerLane<float> values, const F& combine) {
  for (int apart = kLanes / 2; apart > 0; apart /= 2) {
    const PerLane<float> before = values;
    for (int lane = 0; lane < kLanes; ++lane) values[lane] = combine(before[lane], before[lane ^ apart]);
  }
  return values[0];
}

template <class Work>
void launch_items(const char* /*name*/, const Work& work, std::int64_t items, const Launch& /*launch*/) {
  for (std::int64_t item = 0; item < items; ++item) {
    WarpMemory memory;
    std::memset(&memory, 0xFF, sizeof(memory));  // NaN, so that a read before a write shows
    work(item, memory);
  }
}

#endif

}  // namespace rapt::RAPT_KERNELS
