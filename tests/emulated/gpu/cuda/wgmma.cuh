// Replaces src/cuda/wgmma.cuh with products of the modelled tensor core. Operands are read, and sums are written, only
// when a thread waits for the products, which is as late as the device may do it.
#pragma once

#include <cstddef>
#include <cstdint>

#include "cuda/lanes.cuh"
#include "cuda/ptx.cuh"

namespace rapt::cuda {

// A lane's part of a product: its accumulators, and where the factors are.
struct EmulatedProduct {
  DType type;
  float* sums;                   // columns / 2 of them
  int columns, depth;            // N, K
  const std::uint32_t* a;        // in registers: depth / 16 fragments of 4; or null
  std::uint32_t a_tile, b_tile;  // descriptors in shared memory
  bool b_is_k_major;
  bool add;
  std::uint64_t operands = 0;  // a hash of those in shared memory when the product was issued
};

void emulate_block();  // starts a new block: no products are under way, and shared memory holds NaN
void emulate(const EmulatedProduct& product);
void emulate_commit();
void emulate_wait(int groups);

inline std::uint32_t descriptor(const void* tile, int leading_bytes) {
  return (shared_address(tile) & 0x3FFFF) >> 4 | static_cast<std::uint32_t>(leading_bytes >> 4) << 16;
}

inline void products_begin() {}
inline void products_commit() { emulate_commit(); }
template <int kGroups>
void products_wait() {
  emulate_wait(kGroups);
}

constexpr int kSwizzledRow = 128;
constexpr int panel_units(int rows) { return rows * kSwizzledRow / 16; }

template <class Type, int kSize, int kKeys>
void multiply_transposed(float (&s)[kKeys / 2], std::uint32_t q, std::uint32_t k) {
  emulate({Type::kType, s, kKeys, kSize, nullptr, q, k, true, false});
}

template <class Type, int kSize, int kKeys>
void multiply(float (&o)[kSize / 2], const std::uint32_t (&p)[kKeys / 16][4], std::uint32_t v, int add) {
  emulate({Type::kType, o, kSize, kKeys, &p[0][0], 0, v, false, add != 0});
}

}  // namespace rapt::cuda
