// Replaces src/cuda/ptx.cuh: barriers and copies of the block in tests/emulated/block.h.
#pragma once

#include <cuda.h>

#include <cstddef>
#include <cstdint>
#include <stdexcept>

#include "cuda/lanes.cuh"

namespace rapt::cuda {

// The shared memory of the block, as kernels declare it.
extern std::byte memory[test::kSharedBytes];

inline std::uint32_t shared_address(const void* pointer) {
  return static_cast<std::uint32_t>(static_cast<const std::byte*>(pointer) - memory);
}

// An mbarrier: a phase ends when `count` arrivals and all expected bytes have come in.
struct Barrier {
  int count, pending;
  std::int64_t bytes;
  std::uint64_t phase;

  void init(int arrivals) {
    count = pending = arrivals;
    bytes = 0;
    phase = 0;
  }
  void arrive() {
    if (--pending < 0) throw std::logic_error("a barrier has more arrivals than it counts");
    end_phase_if_complete();
  }
  void arrive_and_expect(int expected) {
    bytes += expected;
    arrive();
  }
  void complete(int done) {
    bytes -= done;
    end_phase_if_complete();
  }
  void wait(std::uint32_t parity) {
    test::wait_until([](const void* p, std::uint64_t of) { return *static_cast<const std::uint64_t*>(p) % 2 != of; },
                     &phase, parity);
  }

 private:
  void end_phase_if_complete() {
    if (pending != 0 || bytes != 0) return;
    pending = count;
    ++phase;
  }
};

inline void fence_barrier_init() {}
inline void fence_async_proxy() {}

// Where the 128-byte swizzle puts a byte of shared memory: the 16-byte parts of each of 8 rows of 128 bytes are
// permuted.
inline std::uint32_t swizzled(std::uint32_t address) { return address ^ (address >> 7 & 7) << 4; }

// The copy arrives some time later, perhaps after the thread that requested it has ended.
inline void copy_box(void* to, const CUtensorMap& map, Barrier& barrier, int x, int y, int z, int w) {
  const std::uint32_t begin = shared_address(to);
  if (begin % 1024 != 0) throw std::logic_error("a box begins at no multiple of 1024 bytes");
  test::defer([begin, map, &barrier, x, y, z, w] {
    std::uint32_t address = begin;
    for (int head = z; head < z + map.box_heads; ++head) {
      for (int row = y; row < y + map.box_rows; ++row) {
        const bool inside = row >= 0 && row < map.rows && head >= 0 && head < map.heads && w >= 0 && w < map.batch;
        for (int element = x; element < x + 64; ++element, address += 2) {
          std::uint16_t bits = 0;
          if (inside && element < map.elements)
            bits = static_cast<const std::uint16_t*>(map.view.data)[map.view.offset(w, head, row, element)];
          *reinterpret_cast<std::uint16_t*>(memory + swizzled(address)) = bits;
        }
      }
    }
    barrier.complete(static_cast<int>(address - begin));
  });
}
inline void prefetch_box(const CUtensorMap& /*map*/, int /*x*/, int /*y*/, int /*z*/, int /*w*/) {}
inline void prefetch_map(const CUtensorMap& /*map*/) {}

inline void named_sync(int barrier, int count) { test::wait_at(barrier, count); }
inline void named_arrive(int barrier, int count) { test::arrive_at(barrier, count); }

inline int reread_thread() { return test::block_thread(); }

template <int kRegisters>
void give_registers() {}
template <int kRegisters>
void take_registers() {}

}  // namespace rapt::cuda
