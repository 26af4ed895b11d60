// Philox 4x32-10 for one counter in each lane.
#if defined(RAPT_CPU_DROPOUT_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef RAPT_CPU_DROPOUT_INL_H
#undef RAPT_CPU_DROPOUT_INL_H
#else
#define RAPT_CPU_DROPOUT_INL_H
#endif

#include "cpu/vectors-inl.h"
#include "rapt/random.h"

HWY_BEFORE_NAMESPACE();
namespace rapt::cpu::HWY_NAMESPACE {

using VecU32 = hn::Vec<U32>;

// 32 × 32 -> 64 bits in each lane: the high and the low half.
HWY_INLINE void MultiplyWide(VecU32 a, VecU32 b, VecU32& high, VecU32& low) {
  const U32 u32;
#if HWY_TARGET == HWY_SCALAR
  const std::uint64_t product = std::uint64_t{hn::GetLane(a)} * hn::GetLane(b);
  high = hn::Set(u32, static_cast<std::uint32_t>(product >> 32));
  low = hn::Set(u32, static_cast<std::uint32_t>(product));
#else
  const hn::Repartition<std::uint64_t, U32> u64;
  const auto even = hn::MulEven(a, b);
  const auto odd = hn::MulEven(hn::BitCast(u32, hn::ShiftRight<32>(hn::BitCast(u64, a))),
                               hn::BitCast(u32, hn::ShiftRight<32>(hn::BitCast(u64, b))));
  high = hn::OddEven(hn::BitCast(u32, odd), hn::BitCast(u32, hn::ShiftRight<32>(even)));
  low = hn::OddEven(hn::BitCast(u32, hn::ShiftLeft<32>(odd)), hn::BitCast(u32, even));
#endif
}

HWY_INLINE void Philox(VecU32& c0, VecU32& c1, VecU32& c2, VecU32& c3, PhiloxKey key) {
  const U32 u32;
  for (int round = 0; round < 10; ++round) {
    VecU32 high0, low0, high1, low1;
    MultiplyWide(c0, hn::Set(u32, 0xD2511F53U), high0, low0);
    MultiplyWide(c2, hn::Set(u32, 0xCD9E8D57U), high1, low1);
    c0 = hn::Xor(hn::Xor(high1, c1), hn::Set(u32, key[0]));
    c1 = low1;
    c2 = hn::Xor(hn::Xor(high0, c3), hn::Set(u32, key[1]));
    c3 = low0;
    key[0] += 0x9E3779B9U;
    key[1] += 0xBB67AE85U;
  }
}

}  // namespace rapt::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
