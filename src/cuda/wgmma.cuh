// The products of Hopper's tensor cores: D (64 × N, f32) = A (64 × 16) · B (16 × N) + D, computed by one warpgroup.
//
// Fragments: thread t of the warpgroup (in warp w = t / 32, lane = t % 32) holds rows r = 16 w + lane / 4 and r + 8. Of
// D, register i holds row r + 8 (i / 2 % 2), column 8 (i / 4) + 2 (lane % 4) + i % 2. Of A, register i (two 16-bit
// numbers, the lower column in the lower half) holds row r + 8 (i % 2), columns 8 (i / 2) + 2 (lane % 4) and the next.
// So the f32 pairs of D's columns 16 k … 16 k + 15, rounded to 16 bits in the order of the registers, are A's fragment
// of those columns.
//
// In shared memory, a tile is made of panels that are 64 elements (128 bytes) wide, row after row, in the 128-byte
// swizzle that bulk tensor copies write. A and K-major B have the summed index within a row; MN-major B has it across
// rows.
#pragma once

#include <cstdint>

#include "cuda/lanes.cuh"
#include "cuda/ptx.cuh"

namespace rapt::cuda {

// The low word of a matrix descriptor: start address and leading offset in units of 16 bytes. The high word is
// constant.
RAPT_DEVICE std::uint32_t descriptor(const void* tile, int leading_bytes) {
  return ((shared_address(tile) & 0x3FFFF) >> 4) | (static_cast<std::uint32_t>(leading_bytes >> 4) << 16);
}
// The whole descriptor: 128-byte swizzle, and 1024 bytes from 8 rows to the next 8.
RAPT_DEVICE std::uint64_t whole_descriptor(std::uint32_t low) { return low | (std::uint64_t{0x40000040} << 32); }

// Call before the first product, and after writing to registers of a product.
RAPT_DEVICE void products_begin() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
// Ends a group of products.
RAPT_DEVICE void products_commit() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }
// Waits until at most kGroups groups are unfinished.
template <int kGroups>
RAPT_DEVICE void products_wait() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(kGroups) : "memory");
}

// clang-format off
#define RAPT_D32 \
  "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, " \
  "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31"
#define RAPT_D64 RAPT_D32 ", " \
  "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, " \
  "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63"
#define RAPT_D128 RAPT_D64 ", " \
  "%64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79, " \
  "%80, %81, %82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95, " \
  "%96, %97, %98, %99, %100, %101, %102, %103, %104, %105, %106, %107, %108, %109, %110, %111, " \
  "%112, %113, %114, %115, %116, %117, %118, %119, %120, %121, %122, %123, %124, %125, %126, %127"
#define RAPT_REG4(d, i) "+f"(d[i]), "+f"(d[(i) + 1]), "+f"(d[(i) + 2]), "+f"(d[(i) + 3])
#define RAPT_REG16(d, i) RAPT_REG4(d, i), RAPT_REG4(d, (i) + 4), RAPT_REG4(d, (i) + 8), RAPT_REG4(d, (i) + 12)
#define RAPT_REG32(d, i) RAPT_REG16(d, i), RAPT_REG16(d, (i) + 16)
#define RAPT_REG64(d, i) RAPT_REG32(d, i), RAPT_REG32(d, (i) + 32)
#define RAPT_REG128(d, i) RAPT_REG64(d, i), RAPT_REG64(d, (i) + 64)

// A and B from shared memory, B K-major. The operands after the R registers of D are A, B, and whether D is added.
#define RAPT_PRODUCT_SHARED(N, R, TYPE, A, B, ADD)                                                   \
  asm volatile("{.reg .pred add; setp.ne.b32 add, %" #ADD ", 0;\n"                                   \
               "wgmma.mma_async.sync.aligned.m64n" #N "k16.f32." TYPE "." TYPE " {" RAPT_D##R "}, "   \
               "%" #A ", %" #B ", add, 1, 1, 0, 0;}"                                                  \
               : RAPT_REG##R(d, 0) : "l"(a), "l"(b), "r"(add))

// A from registers, B MN-major. The operands after the R registers of D are the four of A, B, and whether D is added.
#define RAPT_PRODUCT_REGISTERS(N, R, TYPE, A0, A1, A2, A3, B, ADD)                                   \
  asm volatile("{.reg .pred add; setp.ne.b32 add, %" #ADD ", 0;\n"                                   \
               "wgmma.mma_async.sync.aligned.m64n" #N "k16.f32." TYPE "." TYPE " {" RAPT_D##R "}, "   \
               "{%" #A0 ", %" #A1 ", %" #A2 ", %" #A3 "}, %" #B ", add, 1, 1, 1;}"                    \
               : RAPT_REG##R(d, 0) : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(add))
// clang-format on

// One wgmma instruction: it adds 16 terms to each sum of D, or replaces D if `add` is 0. N is twice the number of
// registers of D.
template <class Type>
RAPT_DEVICE void product_shared(float (&d)[32], std::uint64_t a, std::uint64_t b, int add) {
  if constexpr (Type::kType == DType::bf16) {
    RAPT_PRODUCT_SHARED(64, 32, "bf16", 32, 33, 34);
  } else {
    RAPT_PRODUCT_SHARED(64, 32, "f16", 32, 33, 34);
  }
}
template <class Type>
RAPT_DEVICE void product_shared(float (&d)[64], std::uint64_t a, std::uint64_t b, int add) {
  if constexpr (Type::kType == DType::bf16) {
    RAPT_PRODUCT_SHARED(128, 64, "bf16", 64, 65, 66);
  } else {
    RAPT_PRODUCT_SHARED(128, 64, "f16", 64, 65, 66);
  }
}

template <class Type>
RAPT_DEVICE void product_registers(float (&d)[32], const std::uint32_t (&a)[4], std::uint64_t b, int add) {
  if constexpr (Type::kType == DType::bf16) {
    RAPT_PRODUCT_REGISTERS(64, 32, "bf16", 32, 33, 34, 35, 36, 37);
  } else {
    RAPT_PRODUCT_REGISTERS(64, 32, "f16", 32, 33, 34, 35, 36, 37);
  }
}
template <class Type>
RAPT_DEVICE void product_registers(float (&d)[64], const std::uint32_t (&a)[4], std::uint64_t b, int add) {
  if constexpr (Type::kType == DType::bf16) {
    RAPT_PRODUCT_REGISTERS(128, 64, "bf16", 64, 65, 66, 67, 68, 69);
  } else {
    RAPT_PRODUCT_REGISTERS(128, 64, "f16", 64, 65, 66, 67, 68, 69);
  }
}
template <class Type>
RAPT_DEVICE void product_registers(float (&d)[128], const std::uint32_t (&a)[4], std::uint64_t b, int add) {
  if constexpr (Type::kType == DType::bf16) {
    RAPT_PRODUCT_REGISTERS(256, 128, "bf16", 128, 129, 130, 131, 132, 133);
  } else {
    RAPT_PRODUCT_REGISTERS(256, 128, "f16", 128, 129, 130, 131, 132, 133);
  }
}

// The bytes of a row of a panel, and the distance from one panel to the next in a tile with this many rows, in the
// units of descriptors (16 bytes).
constexpr int kSwizzledRow = 128;
RAPT_HOST_DEVICE constexpr int panel_units(int rows) { return rows * kSwizzledRow / 16; }

// s (64 × kKeys) = q (64 × kSize) · kᵀ, both K-major in shared memory; `add` is 0 for the first 16 elements of kSize,
// so s is replaced.
template <class Type, int kSize, int kKeys>
RAPT_DEVICE void multiply_transposed(float (&s)[kKeys / 2], std::uint32_t q, std::uint32_t k) {
  // Without this statement the compiler would keep the descriptors of a large q from one call to the next, which takes
  // more uniform registers than there are.
  if constexpr (kSize > 128) asm volatile("" : "+r"(q));
#pragma unroll
  for (int d = 0; d < kSize; d += 16) {
    const int panel = d / 64, within = d % 64 * 2 / 16;
    product_shared<Type>(s, whole_descriptor(q + panel * panel_units(64) + within),
                         whole_descriptor(k + panel * panel_units(kKeys) + within), d > 0 ? 1 : 0);
  }
}

// o (64 × kSize) = p (64 × kKeys, in registers) · v + (add ? o : 0), v (kKeys × kSize) in shared memory.
template <class Type, int kSize, int kKeys>
RAPT_DEVICE void multiply(float (&o)[kSize / 2], const std::uint32_t (&p)[kKeys / 16][4], std::uint32_t v, int add) {
#pragma unroll
  for (int j = 0; j < kKeys; j += 16) {
    product_registers<Type>(o, p[j / 16], whole_descriptor(v + j * kSwizzledRow / 16), j > 0 ? 1 : add);
  }
}

#undef RAPT_D32
#undef RAPT_D64
#undef RAPT_D128
#undef RAPT_REG4
#undef RAPT_REG16
#undef RAPT_REG32
#undef RAPT_REG64
#undef RAPT_REG128
#undef RAPT_PRODUCT_SHARED
#undef RAPT_PRODUCT_REGISTERS

}  // namespace rapt::cuda
