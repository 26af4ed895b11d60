// The tensor-core instructions with which `rapt check --tensor-core` compares the model (tensor_core.h), one function
// each. The kernels have functions of their own (wgmma.cuh), for the shapes and layouts that they need.
#pragma once

#include <cstdint>

#include "rapt/dtype.h"

namespace rapt::cuda {

// sums (16, 8) += a (16, 16) · b (8, 16)ᵀ, computed by one warp.
template <DType kType>
__device__ __forceinline__ void mma_m16n8k16(float (&sums)[4], const std::uint32_t (&a)[4],
                                             const std::uint32_t (&b)[2]) {
#define RAPT_MMA(type)                                                      \
  asm volatile("mma.sync.aligned.m16n8k16.row.col.f32." type "." type       \
               ".f32 {%0,%1,%2,%3},{%4,%5,%6,%7},{%8,%9},{%0,%1,%2,%3};"    \
               : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3]) \
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]))
  if constexpr (kType == DType::bf16) {
    RAPT_MMA("bf16");
  } else {
    RAPT_MMA("f16");
  }
#undef RAPT_MMA
}

enum class Swizzle : std::uint64_t { none = 0, bytes_128 = 1 };

// The descriptor of a matrix in shared memory (PTX ISA, "Matrix descriptor"). `leading` and `stride` are in bytes.
__device__ __forceinline__ std::uint64_t matrix_descriptor(const void* begin, int leading, int stride,
                                                           Swizzle swizzle) {
  const auto address = static_cast<std::uint64_t>(__cvta_generic_to_shared(begin)) & 0x3FFFF;
  return address >> 4 | static_cast<std::uint64_t>(leading >> 4) << 16 | static_cast<std::uint64_t>(stride >> 4) << 32 |
         static_cast<std::uint64_t>(swizzle) << 62;
}

// sums (64, N) += A (64, 16) · B (16, N), computed by one warpgroup, with A in registers or in shared memory.
template <int kN>
struct Wgmma;

// The accumulators as registers and as operands of asm. The macros below take the numbers of the operands that follow
// the accumulators.
#define RAPT_REGISTERS_4 "%0,%1,%2,%3"
#define RAPT_REGISTERS_32                                      \
  RAPT_REGISTERS_4                                             \
  ",%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,%16,%17,%18,%19" \
  ",%20,%21,%22,%23,%24,%25,%26,%27,%28,%29,%30,%31"
#define RAPT_REGISTERS_64                                            \
  RAPT_REGISTERS_32                                                  \
  ",%32,%33,%34,%35,%36,%37,%38,%39,%40,%41,%42,%43,%44,%45,%46,%47" \
  ",%48,%49,%50,%51,%52,%53,%54,%55,%56,%57,%58,%59,%60,%61,%62,%63"
#define RAPT_REGISTERS_128                                                       \
  RAPT_REGISTERS_64                                                              \
  ",%64,%65,%66,%67,%68,%69,%70,%71,%72,%73,%74,%75,%76,%77,%78,%79"             \
  ",%80,%81,%82,%83,%84,%85,%86,%87,%88,%89,%90,%91,%92,%93,%94,%95"             \
  ",%96,%97,%98,%99,%100,%101,%102,%103,%104,%105,%106,%107,%108,%109,%110,%111" \
  ",%112,%113,%114,%115,%116,%117,%118,%119,%120,%121,%122,%123,%124,%125,%126,%127"
#define RAPT_SUMS_4(n) "+f"(sums[n]), "+f"(sums[n + 1]), "+f"(sums[n + 2]), "+f"(sums[n + 3])
#define RAPT_SUMS_16(n) RAPT_SUMS_4(n), RAPT_SUMS_4(n + 4), RAPT_SUMS_4(n + 8), RAPT_SUMS_4(n + 12)
#define RAPT_SUMS_32(n) RAPT_SUMS_16(n), RAPT_SUMS_16(n + 16)
#define RAPT_SUMS_64(n) RAPT_SUMS_32(n), RAPT_SUMS_32(n + 32)
#define RAPT_SUMS_128(n) RAPT_SUMS_64(n), RAPT_SUMS_64(n + 64)

// The predicate says that the products are added to the accumulators, and "1, 1" that no operand is negated.
#define RAPT_WGMMA_FROM_SHARED(type, n, count, o0, o1, o2)                                                         \
  asm volatile("{.reg .pred p; setp.eq.u32 p, 0, 0; wgmma.mma_async.sync.aligned.m64n" #n "k16.f32." type "." type \
               " {" RAPT_REGISTERS_##count "}, %" #o0 ", %" #o1 ", p, 1, 1, 0, %" #o2 ";}"                         \
               : RAPT_SUMS_##count(0)                                                                              \
               : "l"(a), "l"(b), "n"(kTransposed ? 1 : 0))
#define RAPT_WGMMA_FROM_REGISTERS(type, n, count, o0, o1, o2, o3, o4, o5)                                            \
  asm volatile("{.reg .pred p; setp.eq.u32 p, 0, 0; wgmma.mma_async.sync.aligned.m64n" #n "k16.f32." type "." type   \
               " {" RAPT_REGISTERS_##count "}, {%" #o0 ",%" #o1 ",%" #o2 ",%" #o3 "}, %" #o4 ", p, 1, 1, %" #o5 ";}" \
               : RAPT_SUMS_##count(0)                                                                                \
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "n"(kTransposed ? 1 : 0))
#define RAPT_WGMMA(n, count, o0, o1, o2, o3, o4, o5)                                                                 \
  template <>                                                                                                        \
  struct Wgmma<n> {                                                                                                  \
    template <DType kType, bool kTransposed>                                                                         \
    static __device__ __forceinline__ void run(float (&sums)[n / 2], std::uint64_t a, std::uint64_t b) {             \
      if constexpr (kType == DType::bf16) {                                                                          \
        RAPT_WGMMA_FROM_SHARED("bf16", n, count, o0, o1, o2);                                                        \
      } else {                                                                                                       \
        RAPT_WGMMA_FROM_SHARED("f16", n, count, o0, o1, o2);                                                         \
      }                                                                                                              \
    }                                                                                                                \
    template <DType kType, bool kTransposed>                                                                         \
    static __device__ __forceinline__ void run(float (&sums)[n / 2], const std::uint32_t (&a)[4], std::uint64_t b) { \
      if constexpr (kType == DType::bf16) {                                                                          \
        RAPT_WGMMA_FROM_REGISTERS("bf16", n, count, o0, o1, o2, o3, o4, o5);                                         \
      } else {                                                                                                       \
        RAPT_WGMMA_FROM_REGISTERS("f16", n, count, o0, o1, o2, o3, o4, o5);                                          \
      }                                                                                                              \
    }                                                                                                                \
  }

RAPT_WGMMA(8, 4, 4, 5, 6, 7, 8, 9);
RAPT_WGMMA(64, 32, 32, 33, 34, 35, 36, 37);
RAPT_WGMMA(128, 64, 64, 65, 66, 67, 68, 69);
RAPT_WGMMA(256, 128, 128, 129, 130, 131, 132, 133);

#undef RAPT_WGMMA
#undef RAPT_WGMMA_FROM_REGISTERS
#undef RAPT_WGMMA_FROM_SHARED
#undef RAPT_SUMS_4
#undef RAPT_SUMS_16
#undef RAPT_SUMS_32
#undef RAPT_SUMS_64
#undef RAPT_SUMS_128
#undef RAPT_REGISTERS_4
#undef RAPT_REGISTERS_32
#undef RAPT_REGISTERS_64
#undef RAPT_REGISTERS_128

}  // namespace rapt::cuda
